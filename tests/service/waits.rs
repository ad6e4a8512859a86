//! Clients that wait for a run: each hears at once where the run is, and nobody takes half of an answer for a whole one.

use serde_json::{Value, json};

use super::served::Served;
use super::{on_both, saying};

on_both!(
    a_waiting_client_receives_the_run_location_at_once_and_heartbeats,
    an_answer_stops_with_its_server_and_is_available_from_another,
    a_client_that_leaves_stops_its_run_on_request,
    a_late_join_returns_the_final_state_of_the_run,
);

/// Asks for a run and returns its answer, of which the head has come alone, and the place of the run.
async fn waiting(served: &Served, body: &Value) -> (reqwest::Response, String) {
    let thread = served.thread().await;
    let before = served.model.requests().len();
    let asked = served.http.post(format!("{}/threads/{thread}/runs/wait", served.url));
    let asked = asked.header("content-type", "application/json").body(body.to_string());
    let answer = asked.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "application/json");
    let run = answer.headers()["content-location"].to_str().unwrap().to_owned();
    assert_eq!(answer.headers()["location"], format!("{run}/join"));
    served.model.wait_for_requests(before + 1).await;
    (answer, run)
}

async fn stop(served: &Served, run: &str) {
    let (code, reply) = served.post(&format!("{run}/cancel?wait=true"), &json!({})).await;
    assert_eq!((code, reply), (200, json!({})));
}

/// X8: the model says nothing, so that the head comes before the end of the run.
async fn a_waiting_client_receives_the_run_location_at_once_and_heartbeats(served: Served) {
    let (mut answer, run) = waiting(&served, &saying("hang")).await;
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "\n");
    stop(&served, &run).await;
    let values: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    assert_eq!(values["messages"][0]["content"], "hang", "{values}");
    let (code, again) = served.get(&format!("{run}/join")).await;
    assert_eq!((code, again), (200, values));
    // What is known before the run begins has a status of its own.
    let thread = run.split("/runs/").next().unwrap();
    let nobody = format!("{thread}/runs/0197a000-0000-7000-8000-000000000000/join");
    assert_eq!(served.get(&nobody).await.0, 404);
    let unknown = json!({ "assistant_id": "nope", "input": {} });
    for path in [format!("{thread}/runs/wait"), "/runs/wait".to_owned()] {
        assert_eq!(served.post(&path, &unknown).await.0, 422, "{path}");
    }
}

/// X5, X8
async fn an_answer_stops_with_its_server_and_is_available_from_another(mut served: Served) {
    for is_killed in [false, true] {
        let (answer, run) = waiting(&served, &saying("hang")).await;
        let asked = served.model.requests().len();
        if is_killed {
            served.crash().await;
        } else {
            served.stop().await;
        }
        let cut = answer.text().await;
        assert!(cut.is_err(), "it looks whole: {cut:?}");
        served.start_again().await;
        served.model.wait_for_requests(asked + 1).await;
        let joined = served.http.get(format!("{}{run}/join", served.url)).send().await.unwrap();
        stop(&served, &run).await;
        let values: Value = serde_json::from_str(&joined.text().await.unwrap()).unwrap();
        assert_eq!(values["messages"][0]["content"], "hang", "{values}");
    }
}

/// X5
async fn a_client_that_leaves_stops_its_run_on_request(served: Served) {
    let mut body = saying("hang");
    body["on_disconnect"] = json!("cancel");
    let (answer, run) = waiting(&served, &body).await;
    drop(answer);
    served.until_got(&run, |run| run["status"] == "interrupted").await;
}

/// X5: later runs of the thread change nothing of what an earlier one left.
async fn a_late_join_returns_the_final_state_of_the_run(served: Served) {
    let thread = served.thread().await;
    let mut left = Vec::new();
    for words in ["approve this", "hello", "hello again"] {
        let asked = served.http.post(format!("{}/threads/{thread}/runs/wait", served.url));
        let asked = asked.header("content-type", "application/json");
        let answer = asked.body(saying(words).to_string()).send().await.unwrap();
        let place = answer.headers()["location"].to_str().unwrap().to_owned();
        let values: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        left.push((place, values));
    }
    assert_eq!(left[0].1["__interrupt__"].as_array().map(Vec::len), Some(1), "{}", left[0].1);
    for (place, values) in left {
        let (code, joined) = served.get(&place).await;
        assert_eq!((code, joined), (200, values), "{place}");
    }
}
