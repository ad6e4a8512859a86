//! Streams: every event once, under the same id, whichever process tells it.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::face::keep_team;
use super::served::Served;
use super::{on_both, saying};

/// One event as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    pub name: String,
    pub data: Value,
    pub id: String,
}

/// Begins a run and reads its stream to the end.
pub async fn events(served: &Served, path: &str, body: &Value) -> Vec<Event> {
    let asked = served.http.post(format!("{}{path}", served.url));
    let asked = asked.header("content-type", "application/json").body(body.to_string());
    let answer = asked.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(
        answer.headers().contains_key("content-location")
            && answer.headers().contains_key("location")
    );
    read(answer, usize::MAX).await
}

/// Reads a stream to its end, or as many events.
pub async fn read(answer: reqwest::Response, most: usize) -> Vec<Event> {
    read_while(answer, |heard| heard.len() < most).await
}

/// Reads a stream until events of all these names have come, or to its end.
pub async fn heard_until(answer: reqwest::Response, names: &BTreeSet<String>) -> Vec<Event> {
    let lacks =
        |heard: &[Event]| names.iter().any(|name| heard.iter().all(|event| event.name != *name));
    read_while(answer, lacks).await
}

async fn read_while(answer: reqwest::Response, more: impl Fn(&[Event]) -> bool) -> Vec<Event> {
    let mut bytes = answer.bytes_stream();
    let mut text = String::new();
    let mut events = Vec::new();
    while let Some(Ok(piece)) = bytes.next().await {
        text.push_str(&String::from_utf8_lossy(&piece));
        while let Some((one, rest)) = text.split_once("\n\n") {
            let mut event = Event::default();
            for line in one.lines() {
                match line.split_once(": ") {
                    Some(("event", name)) => event.name = name.to_owned(),
                    Some(("data", data)) => event.data = serde_json::from_str(data).unwrap(),
                    Some(("id", id)) => event.id = id.to_owned(),
                    _ => {}
                }
            }
            if !event.name.is_empty() {
                events.push(event);
            }
            text = rest.to_owned();
            if !more(&events) {
                return events;
            }
        }
    }
    events
}

on_both!(
    a_stream_resumes_at_its_cut_and_is_the_same_after_a_crash,
    events_received_before_a_crash_are_repeated_word_for_word,
    a_queued_run_streams_under_the_same_ids_as_its_replay,
    a_question_is_published_by_the_task_that_asks_it,
    events_of_subgraphs_reach_clients_that_request_them,
);

/// X5
async fn events_received_before_a_crash_are_repeated_word_for_word(mut served: Served) {
    let thread = served.thread().await;
    let mut body = saying("hello");
    body["stream_mode"] = json!(["values", "updates", "messages-tuple", "tasks"]);
    let asked = served.http.post(format!("{}/threads/{thread}/runs/stream", served.url));
    let asked = asked.header("content-type", "application/json").body(body.to_string());
    let heard = read(asked.send().await.unwrap(), 3).await;
    served.crash_and_start_again().await;
    let run = heard[0].data["run_id"].as_str().unwrap();
    let path = format!("{}/threads/{thread}/runs/{run}/stream", served.url);
    let asked = served.http.get(path).header("last-event-id", "-1");
    let whole = read(asked.send().await.unwrap(), usize::MAX).await;
    assert_eq!(whole[..heard.len()], heard);
    let (_, run) = served.get(&format!("/threads/{thread}/runs/{run}")).await;
    assert_eq!(run["status"], "success", "{run}");
}

/// X5
async fn a_queued_run_streams_under_the_same_ids_as_its_replay(served: Served) {
    let thread = served.thread().await;
    let runs = format!("/threads/{thread}/runs");
    let before = served.model.requests().len();
    let (_, first) = served.post(&runs, &saying("hang")).await;
    served.model.wait_for_requests(before + 1).await;
    let (_, second) = served.post(&runs, &saying("hello")).await;
    assert_eq!(second["status"], "pending");
    let place = format!("{}{runs}/{}/stream", served.url, second["run_id"].as_str().unwrap());
    let asked = || served.http.get(&place).header("last-event-id", "-1");
    let heard = asked().send().await.unwrap();
    let cancel = format!("{runs}/{}/cancel?wait=true", first["run_id"].as_str().unwrap());
    served.post(&cancel, &json!({})).await;
    let heard = read(heard, usize::MAX).await;
    assert_eq!((heard[0].name.as_str(), &heard[0].data["run_id"]), ("metadata", &second["run_id"]));
    assert_eq!(read(asked().send().await.unwrap(), usize::MAX).await, heard);
}

/// S2.12, S3.08, X5
async fn a_stream_resumes_at_its_cut_and_is_the_same_after_a_crash(mut served: Served) {
    let thread = served.thread().await;
    let mut body = saying("hello");
    body["stream_mode"] = json!(["values", "updates", "messages-tuple", "tasks"]);
    let whole = events(&served, &format!("/threads/{thread}/runs/stream"), &body).await;
    let run = whole[0].data["run_id"].as_str().unwrap().to_owned();
    let path = format!("/threads/{thread}/runs/{run}/stream");
    let join = async |served: &Served, last: &str| {
        let asked = served.http.get(format!("{}{path}", served.url)).header("last-event-id", last);
        read(asked.send().await.unwrap(), usize::MAX).await
    };
    assert_eq!(join(&served, "-1").await, whole);
    served.crash_and_start_again().await;
    for (index, event) in whole.iter().enumerate() {
        assert_eq!(join(&served, &event.id).await, whole[index + 1..], "after {}", event.id);
    }
}

/// X5: of two agents in a stage the first is answered, and the second asks again.
async fn a_question_is_published_by_the_task_that_asks_it(served: Served) {
    let thread = served.thread().await;
    let (_, asked) = served.post(&format!("/threads/{thread}/runs/wait"), &saying("twice")).await;
    let first = asked["__interrupt__"][0]["id"].as_str().unwrap();
    let resume = json!({ first: { "decisions": [{ "type": "approve" }] } });
    let body = json!({
        "assistant_id": "swarm", "command": { "resume": resume }, "stream_mode": ["tasks", "debug"],
    });
    let heard = events(&served, &format!("/threads/{thread}/runs/stream"), &body).await;
    let (_, now) = served.get(&format!("/threads/{thread}")).await;
    let open = now["interrupts"].as_object().unwrap();
    let (task, questions) = open.iter().next().unwrap();
    assert_eq!((open.len(), questions.as_array().unwrap().len()), (1, 1), "{now}");
    let asks = |data: &Value| data["interrupts"].as_array().is_some_and(|all| !all.is_empty());
    let reported: Vec<&Value> = heard
        .iter()
        .map(|one| if one.name == "debug" { &one.data["payload"] } else { &one.data })
        .filter(|data| data["result"].is_object() && asks(data))
        .collect();
    assert_eq!(reported.len(), 2, "{heard:#?}");
    for one in reported {
        assert_eq!((&one["id"], &one["interrupts"]), (&json!(task), questions), "{one}");
        let begun = heard.iter().find(|event| event.data["id"] == json!(task)).unwrap();
        assert_eq!(begun.data["name"], one["name"]);
    }
}

/// X5
async fn events_of_subgraphs_reach_clients_that_request_them(served: Served) {
    keep_team(&served).await;
    for wants in [true, false] {
        let thread = served.thread().await;
        let mut body = saying("hello");
        body["assistant_id"] = json!("team_keepers");
        body["stream_mode"] = json!(["custom"]);
        body["stream_subgraphs"] = json!(wants);
        let heard = events(&served, &format!("/threads/{thread}/runs/stream"), &body).await;
        let is_nested = heard.iter().any(|one| one.name.starts_with("custom|"));
        assert_eq!(is_nested, wants, "{heard:#?}");
    }
}
