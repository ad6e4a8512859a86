//! Recorded model calls, asked again with another prompt; and what people think of answers, as a data set.

use reqwest::Method;
use serde_json::{Value, json};

use super::served::Served;
use super::{on_both, saying};

on_both!(
    a_recorded_call_is_asked_again_with_another_prompt_and_counts_for_the_day,
    feedback_in_the_metadata_of_threads_becomes_a_data_set,
);

/// Makes a thread with an answered question.
async fn asked(served: &Served, text: &str) -> String {
    let (_, thread) = served.post("/threads", &json!({})).await;
    let thread = thread["thread_id"].as_str().unwrap().to_owned();
    let (status, _) = served.post(&format!("/threads/{thread}/runs/wait"), &saying(text)).await;
    assert_eq!(status, 200);
    thread
}

/// X9
async fn a_recorded_call_is_asked_again_with_another_prompt_and_counts_for_the_day(served: Served) {
    let served = served.again_with(&[("PERIHELION_SERVE_MAX_DAILY_TOKENS", "10000000")]).await;
    let thread = asked(&served, "hello").await;
    let taken = async || {
        let (_, me) = served.get("/v1/auth/me").await;
        let limits = me["limits"].as_array().unwrap();
        let tokens = limits.iter().find(|one| one["name"] == "max_daily_tokens").unwrap();
        tokens["taken"].as_u64().unwrap()
    };
    let before = taken().await;
    let (_, trace) = served.get(&format!("/v1/threads/{thread}/trace")).await;
    let spans = trace["spans"].as_array().unwrap();
    let call = spans.iter().rfind(|span| span["kind"] == "chat").unwrap();
    let again = format!("/v1/threads/{thread}/again");
    let trial = json!({ "span_id": call["span_id"], "prompt": "Answer as a pirate." });
    let (status, answer) = served.post(&again, &trial).await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer["output"].is_string() && answer["latency_ms"].is_u64(), "{answer}");
    let requests = served.model.requests();
    let is_trial = |content: &Value| content == "Answer as a pirate.";
    let sent = requests.iter().find(|sent| is_trial(&sent.body["messages"][0]["content"])).unwrap();
    assert_eq!(Some(sent.role.as_str()), call["role"].as_str());
    let messages = sent.body["messages"].as_array().unwrap();
    let recorded = call["input"].as_array().unwrap();
    assert_eq!(messages.len(), recorded.len(), "the rest of the request is as it was");
    let usage = &answer["usage"];
    let tokens = usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
    assert_eq!(taken().await, before + tokens);
    let (status, missing) = served.post(&again, &json!({ "span_id": "00", "prompt": "x" })).await;
    assert_eq!(status, 404, "{missing}");
    let served = served.again_with(&[("PERIHELION_SERVE_MAX_DAILY_TOKENS", "1")]).await;
    assert_eq!(served.post(&again, &trial).await.0, 429, "the day is spent");
}

async fn feedback_in_the_metadata_of_threads_becomes_a_data_set(served: Served) {
    let rated = asked(&served, "hello").await;
    let other = asked(&served, "hello").await;
    let feedback = json!({ "feedback": { "1": { "score": 1, "labels": ["kind"] } } });
    let noted = json!({ "metadata": feedback });
    assert_eq!(served.send(Method::PATCH, &format!("/threads/{rated}"), &noted).await.0, 200);
    let data = async |query: &str| {
        let asked = served.http.get(format!("{}/v1/evaluations/data{query}", served.url));
        let lines = asked.send().await.unwrap().text().await.unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let all = data("").await;
    assert_eq!(all.len(), 1);
    assert_eq!(
        (&all[0]["name"], &all[0]["tags"]),
        (&json!(format!("{rated} 1")), &json!(["good", "kind"]))
    );
    assert_eq!(all[0]["turns"], json!([{ "question": "hello" }]));
    assert!(all[0]["expected"].is_string());
    let of_other = data(&format!("?thread={other}")).await;
    assert_eq!((of_other.len(), &of_other[0]["tags"]), (1, &json!([])));
}
