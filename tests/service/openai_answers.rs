//! Answers of OpenAI's APIs: JSON of a wanted form, responses that are read again, later or never (X8).

use serde_json::{Value, json};

use super::on_both;
use super::served::Served;

on_both!(
    an_answer_is_json_of_the_wanted_form_after_one_repair,
    a_streamed_answer_that_breaks_off_does_not_end_as_a_whole_one,
    output_without_json_of_the_wanted_form_is_a_refusal_or_a_failure,
    a_response_is_streamed_again_from_any_event,
    the_input_of_a_response_is_listed,
    a_response_is_stored_and_runs_in_the_background_only_if_that_was_asked_for,
    a_response_ends_at_one_time_for_all_who_read_it,
    each_chunk_has_a_usage_where_that_was_asked_for,
);

fn schema() -> Value {
    json!({
        "type": "object", "properties": { "capital": { "type": "string" } }, "required": ["capital"],
        "additionalProperties": false,
    })
}

fn response(input: &str) -> Value {
    let format =
        json!({ "type": "json_schema", "name": "place", "schema": schema(), "strict": true });
    json!({ "model": "swarm", "input": input, "text": { "format": format } })
}

fn chat(text: &str) -> Value {
    let format =
        json!({ "type": "json_schema", "json_schema": { "name": "place", "schema": schema() } });
    let messages = json!([{ "role": "user", "content": text }]);
    json!({ "model": "swarm", "messages": messages, "response_format": format })
}

/// Posts a body with `stream` and returns the data of its events, or those of a stream that is read again.
async fn streamed(served: &Served, path: &str, body: Option<Value>) -> Vec<Value> {
    let url = format!("{}{path}", served.url);
    let asked = match body {
        Some(mut body) => {
            body["stream"] = json!(true);
            let asked = served.http.post(url).header("content-type", "application/json");
            asked.body(body.to_string())
        }
        None => served.http.get(url),
    };
    let text = asked.send().await.unwrap().text().await.unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Puts the pieces of a field together.
fn pieces(events: &[Value], pointer: &str) -> String {
    events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect()
}

/// X8
async fn an_answer_is_json_of_the_wanted_form_after_one_repair(served: Served) {
    let wanted = json!({ "capital": "Paris" });
    let read = |text: &Value| serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap();
    let question = "Name the capital as JSON";
    let (code, answer) = served.post("/v1/responses", &response(question)).await;
    assert_eq!((code, read(&answer["output"][0]["content"][0]["text"])), (200, wanted.clone()));
    assert_eq!(answer["text"]["format"]["name"], "place", "{answer}");
    let asked = served.model.requests();
    assert_eq!(asked.iter().filter(|one| one.role == "qa").count(), 2, "it was repaired once");
    let (code, answer) = served.post("/v1/chat/completions", &chat(question)).await;
    let message = &answer["choices"][0]["message"];
    assert_eq!((code, read(&message["content"])), (200, wanted.clone()), "{answer}");
    let events = streamed(&served, "/v1/chat/completions", Some(chat(question))).await;
    let text = pieces(&events, "/choices/0/delta/content");
    assert_eq!(read(&json!(text)), wanted, "{events:?}");
    let events = streamed(&served, "/v1/responses", Some(response(question))).await;
    assert_eq!(read(&json!(pieces(&events, "/delta"))), wanted, "{events:?}");
    let any = json!({ "model": "swarm", "input": question, "text": { "format": { "type": "json_object" } } });
    let (_, answer) = served.post("/v1/responses", &any).await;
    assert_eq!(read(&answer["output"][0]["content"][0]["text"]), wanted, "{answer}");
}

/// X8
async fn a_streamed_answer_that_breaks_off_does_not_end_as_a_whole_one(served: Served) {
    let messages = json!([{ "role": "user", "content": "break off" }]);
    let body = json!({ "model": "swarm", "messages": messages });
    let events = streamed(&served, "/v1/chat/completions", Some(body)).await;
    let text = pieces(&events, "/choices/0/delta/content");
    assert!(text.starts_with("The transfer") && text.contains("[The answer was cut off"), "{text}");
    let reasons: Vec<&str> = events
        .iter()
        .filter_map(|event| event.pointer("/choices/0/finish_reason")?.as_str())
        .collect();
    assert!(reasons.is_empty(), "{events:?}");
    let error = events.iter().find_map(|event| event.pointer("/error/message")?.as_str()).unwrap();
    assert!(error.contains("the answer was cut off"), "{error}");
}

/// X8
async fn output_without_json_of_the_wanted_form_is_a_refusal_or_a_failure(served: Served) {
    let question = "clarify this";
    let (_, answer) = served.post("/v1/responses", &response(question)).await;
    let part = &answer["output"][0]["content"][0];
    assert_eq!((&part["type"], &part["refusal"]), (&json!("refusal"), &json!("Which year?")));
    let (_, answer) = served.post("/v1/chat/completions", &chat(question)).await;
    let message = &answer["choices"][0]["message"];
    assert!(message["content"].is_null() && message["refusal"] == "Which year?", "{answer}");
    let events = streamed(&served, "/v1/responses", Some(response(question))).await;
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert!(kinds.contains(&"response.refusal.done"), "{kinds:?}");
    assert!(!kinds.contains(&"response.output_text.delta"), "{kinds:?}");
    let (_, failed) = served.post("/v1/responses", &response("never JSON")).await;
    assert_eq!((&failed["status"], &failed["output"]), (&json!("failed"), &json!([])), "{failed}");
    let (code, why) = served.post("/v1/chat/completions", &chat("never JSON")).await;
    assert_eq!((code, &why["error"]["code"]), (500, &json!("server_error")), "{why}");
}

/// X8
async fn a_response_is_streamed_again_from_any_event(served: Served) {
    let body = json!({ "model": "swarm", "input": "hello" });
    let first = streamed(&served, "/v1/responses", Some(body)).await;
    let id = first[0]["response"]["id"].as_str().unwrap();
    let place = format!("/v1/responses/{id}?stream=true");
    let again = streamed(&served, &place, None).await;
    let numbers = |events: &[Value]| -> Vec<(Value, Value)> {
        events.iter().map(|one| (one["type"].clone(), one["sequence_number"].clone())).collect()
    };
    assert_eq!(numbers(&first), numbers(&again));
    let output = |events: &[Value]| events.last().unwrap()["response"]["output"].clone();
    assert_eq!(output(&first), output(&again));
    let rest = streamed(&served, &format!("{place}&starting_after=4"), None).await;
    assert_eq!(numbers(&rest), numbers(&first)[5..]);
}

/// X8
async fn the_input_of_a_response_is_listed(served: Served) {
    let input = json!([
        { "role": "user", "content": "Who wrote Faust?" },
        { "role": "assistant", "content": [{ "type": "output_text", "text": "Goethe." }] },
        { "role": "user", "content": "And when?" },
    ]);
    let (_, made) =
        served.post("/v1/responses", &json!({ "model": "swarm", "input": input })).await;
    let place = format!("/v1/responses/{}/input_items", made["id"].as_str().unwrap());
    let (code, listed) = served.get(&format!("{place}?order=asc")).await;
    assert_eq!(
        (code, &listed["object"], &listed["has_more"]),
        (200, &json!("list"), &json!(false))
    );
    let texts: Vec<(&Value, &Value)> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["role"], &one["content"][0]["text"]))
        .collect();
    let [user, assistant] = [json!("user"), json!("assistant")];
    let [who, goethe, when] = [json!("Who wrote Faust?"), json!("Goethe."), json!("And when?")];
    assert_eq!(texts, [(&user, &who), (&assistant, &goethe), (&user, &when)]);
    let (_, page) = served.get(&format!("{place}?limit=2")).await;
    assert_eq!((&page["data"][0]["content"][0]["text"], &page["has_more"]), (&when, &json!(true)));
    let last = page["last_id"].as_str().unwrap();
    let (_, page) = served.get(&format!("{place}?after={last}")).await;
    assert_eq!(page["data"].as_array().unwrap().len(), 1, "{page}");
    assert_eq!(served.get(&format!("{place}?order=up")).await.0, 400);
    let (_, made) =
        served.post("/v1/responses", &json!({ "model": "swarm", "input": "hello" })).await;
    let place = format!("/v1/responses/{}/input_items", made["id"].as_str().unwrap());
    let (_, listed) = served.get(&place).await;
    assert_eq!(listed["data"][0]["content"], json!([{ "type": "input_text", "text": "hello" }]));
}

/// X8
async fn a_response_is_stored_and_runs_in_the_background_only_if_that_was_asked_for(
    served: Served,
) {
    let place = |response: &Value| format!("/v1/responses/{}", response["id"].as_str().unwrap());
    let body = json!({ "model": "swarm", "input": "hello", "background": true });
    let (_, begun) = served.post("/v1/responses", &body).await;
    assert!(["queued", "in_progress"].contains(&begun["status"].as_str().unwrap()), "{begun}");
    assert_eq!((&begun["background"], &begun["store"]), (&json!(true), &json!(true)), "{begun}");
    let is_done = |shown: &Value| shown["status"] == "completed";
    let done = served.until_got(&place(&begun), is_done).await;
    assert_eq!(done["background"], true, "{done}");
    let body = json!({ "model": "swarm", "input": "hello", "store": false });
    let (code, passing) = served.post("/v1/responses", &body).await;
    assert_eq!((code, &passing["store"]), (200, &json!(false)), "{passing}");
    assert_eq!(passing["background"], false);
    assert_eq!(passing["output"][0]["content"][0]["text"], "Hello from the star.");
    assert_eq!(served.get(&place(&passing)).await.0, 404);
    let next = json!({ "model": "swarm", "input": "more", "previous_response_id": passing["id"] });
    assert_eq!(served.post("/v1/responses", &next).await.0, 404);
    let both = json!({ "model": "swarm", "input": "hello", "store": false, "background": true });
    let (code, why) = served.post("/v1/responses", &both).await;
    assert_eq!((code, &why["error"]["param"]), (400, &json!("store")), "{why}");
}

/// X8
async fn a_response_ends_at_one_time_for_all_who_read_it(served: Served) {
    let body = json!({ "model": "swarm", "input": "take your time" });
    let (_, whole) = served.post("/v1/responses", &body).await;
    let events = streamed(&served, "/v1/responses", Some(body)).await;
    for answer in [&whole, &events.last().unwrap()["response"]] {
        let place = format!("/v1/responses/{}", answer["id"].as_str().unwrap());
        let (_, read) = served.get(&place).await;
        assert_eq!(answer["completed_at"], read["completed_at"], "{answer}");
        let created = answer["created_at"].as_i64().unwrap();
        assert!(answer["completed_at"].as_i64().unwrap() > created, "it took its time: {answer}");
    }
}

/// X8
async fn each_chunk_has_a_usage_where_that_was_asked_for(served: Served) {
    let messages = json!([{ "role": "user", "content": "hello" }]);
    for counts in [true, false] {
        let options = json!({ "include_usage": counts });
        let body = json!({ "model": "swarm", "messages": messages, "stream_options": options });
        let chunks = streamed(&served, "/v1/chat/completions", Some(body)).await;
        let (last, others) = chunks.split_last().unwrap();
        assert!(others.iter().all(|one| one.get("usage").is_some() == counts), "{chunks:?}");
        assert!(others.iter().all(|one| one["usage"].is_null()), "{chunks:?}");
        let cached = &last["usage"]["prompt_tokens_details"]["cached_tokens"];
        assert_eq!(cached.is_u64(), counts, "{last}");
    }
}
