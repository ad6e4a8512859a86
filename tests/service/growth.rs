//! A turn asks as much of the database on a thread with a long conversation as on a young one, through each API.

use serde_json::{Value, json};

use super::saying;
use super::sent::Record;
use super::served::Served;
use super::statements::without_events;

/// Messages that make a thread as large as after hundreds of turns.
const MESSAGES: usize = 1_200;

/// Turns of which the cheapest one counts: polls of the process fall into others.
const TURNS: usize = 4;

const FACES: [&str; 5] = ["runs/wait", "runs/stream", "/v1/responses", "A2A", "page"];

async fn text_of(served: &Served, method: reqwest::Method, path: &str, body: &Value) -> String {
    let asked = served.http.request(method, format!("{}{path}", served.url));
    let asked = asked.header("content-type", "application/json").header("last-event-id", "-1");
    let answer = asked.body(body.to_string()).send().await.unwrap();
    assert!(answer.status().is_success(), "{path}: {answer:?}");
    answer.text().await.unwrap()
}

/// Takes a turn of a thread through one of the APIs, and returns its answer.
async fn turn(served: &Served, thread: &str, face: &str) -> String {
    let post = reqwest::Method::POST;
    let runs = format!("/threads/{thread}/runs");
    let mut body = saying("hello");
    match face {
        "runs/wait" => text_of(served, post, &format!("{runs}/wait"), &body).await,
        "runs/stream" => {
            body["stream_mode"] = json!(["updates", "messages-tuple"]);
            text_of(served, post, &format!("{runs}/stream"), &body).await
        }
        "/v1/responses" => {
            let metadata = json!({ "thread_id": thread });
            let body = json!({ "model": "swarm", "input": "hello", "metadata": metadata });
            text_of(served, post, "/v1/responses", &body).await
        }
        "A2A" => {
            let parts = json!([{ "text": "hello" }]);
            let id = uuid::Uuid::new_v4();
            let message = json!({ "messageId": id, "role": "ROLE_USER", "contextId": thread, "parts": parts });
            text_of(served, post, "/a2a/message:send", &json!({ "message": message })).await
        }
        _ => {
            body["stream_mode"] = json!(["messages-tuple", "custom", "updates"]);
            body["stream_resumable"] = json!(true);
            let run: Value =
                serde_json::from_str(&text_of(served, post, &runs, &body).await).unwrap();
            let events = format!("{runs}/{}/stream", run["run_id"].as_str().unwrap());
            text_of(served, reqwest::Method::GET, &events, &json!(null)).await
        }
    }
}

/// Returns the statements of a turn through each API, the bytes that were read for it, and those of its answer.
async fn costs(served: &Served, record: &Record, thread: &str) -> Vec<[usize; 3]> {
    let mut costs = Vec::new();
    for face in FACES {
        let mut of_face = Vec::new();
        for _ in 0..TURNS {
            record.take();
            let answer = turn(served, thread, face).await;
            assert!(answer.contains("Hello from the star."), "{face}: {answer}");
            let sent = record.take();
            of_face.push([without_events(&sent).len(), sent.received, answer.len()]);
        }
        costs.push([0, 1, 2].map(|what| of_face.iter().map(|cost| cost[what]).min().unwrap()));
    }
    costs
}

/// X1: statements, bytes that the database sends, and bytes of the answer, by API.
#[tokio::test]
async fn a_turn_reads_as_little_of_a_long_conversation_as_of_a_short_one_through_each_api() {
    let (served, record) = Record::of_server().await;
    let thread = served.thread().await;
    turn(&served, &thread, "runs/wait").await;
    let young = costs(&served, &record, &thread).await;
    let message = |number: usize| {
        let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
        json!({ "id": format!("m{number}"), "role": role, "content": format!("{number} {}", "words ".repeat(40)) })
    };
    let messages: Vec<Value> = (0..MESSAGES).map(message).collect();
    let edit = json!({ "values": { "messages": messages }, "as_node": "qa" });
    let (code, edited) = served.post(&format!("/threads/{thread}/state"), &edit).await;
    assert_eq!(code, 200, "{edited}");
    turn(&served, &thread, "runs/wait").await;
    let old = costs(&served, &record, &thread).await;
    for ((face, young), old) in FACES.into_iter().zip(young).zip(old) {
        println!("{face}: {young:?} statements and bytes on a young thread, {old:?} on an old one");
        assert!(old[0] <= young[0] + 1, "{face}: {young:?}, {old:?}");
        let grows = |of: usize| old[of] > young[of] * 11 / 10 + 2_000;
        assert!(!grows(1), "{face}: {young:?}, {old:?}");
        assert!(face != "page" || !grows(2), "{face}: {young:?}, {old:?}");
    }
}
