//! The thread protocol: one stream over all runs of a thread, the same after a crash, and commands that move it.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use perihelion_database::{Database, query};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use super::behind::waiting;
use super::on_both;
use super::served::Served;

on_both!(
    a_thread_is_followed_over_its_runs_and_is_the_same_after_a_crash,
    a_socket_takes_commands_and_subscriptions,
    a_socket_sends_events_in_their_order_whatever_is_subscribed_to,
    a_further_subscription_takes_no_event_from_one_that_is_behind,
    commands_read_states_and_report_errors,
);

/// How long something may take that is to happen at all.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads events until one is the last of interest.
pub async fn frames(
    served: &Served,
    thread: Uuid,
    body: &Value,
    is_last: impl Fn(&Value) -> bool,
) -> Vec<Value> {
    let asked = served.http.post(format!("{}/threads/{thread}/stream/events", served.url));
    let asked = asked.header("content-type", "application/json").body(body.to_string());
    let answer = asked.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let mut bytes = answer.bytes_stream();
    let mut text = String::new();
    let mut frames = Vec::<Value>::new();
    while let Some(Ok(more)) = bytes.next().await {
        text.push_str(&String::from_utf8_lossy(&more));
        while let Some((one, rest)) = text.split_once("\n\n") {
            if let Some(data) = one.lines().find_map(|line| line.strip_prefix("data: ")) {
                let frame: Value = serde_json::from_str(data).unwrap();
                assert!(one.contains(&format!("id: {}", frame["seq"])), "{one}");
                frames.push(frame);
                if is_last(frames.last().unwrap()) {
                    return frames;
                }
            }
            text = rest.to_owned();
        }
    }
    panic!("the stream ended: {frames:#?}")
}

pub fn is_lifecycle(frame: &Value, word: &str) -> bool {
    frame["method"] == "lifecycle" && frame["params"]["data"]["event"] == word
}

async fn command(served: &Served, thread: Uuid, method: &str, params: Value) -> Value {
    let body = json!({ "id": 7, "method": method, "params": params });
    let (code, answer) = served.post(&format!("/threads/{thread}/commands"), &body).await;
    assert_eq!((code, &answer["id"]), (200, &json!(7)), "{answer}");
    answer
}

fn start(text: &str) -> Value {
    json!({ "assistant_id": "swarm", "input": { "messages": [{ "role": "human", "content": text }] } })
}

/// S2.12, X5
async fn a_thread_is_followed_over_its_runs_and_is_the_same_after_a_crash(mut served: Served) {
    let thread = Uuid::now_v7();
    let all = json!({ "channels": ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"] });
    let moved = async {
        let begun = command(&served, thread, "run.start", start("approve this")).await;
        assert!(begun["result"]["run_id"].is_string(), "{begun}");
    };
    // The stream is opened before there is such a thread.
    let waits = frames(&served, thread, &all, |frame| is_lifecycle(frame, "interrupted"));
    let (first, ()) = tokio::join!(waits, moved);
    assert!(is_lifecycle(&first[0], "running"), "{first:#?}");
    let asked = first.iter().find(|frame| frame["method"] == "input.requested").unwrap();
    let id = asked["params"]["data"]["interrupt_id"].as_str().unwrap();
    assert!(asked["params"]["data"]["payload"]["action_requests"].is_array(), "{asked}");
    let response = json!({ "decisions": [{ "type": "approve" }] });
    let answer = json!({ "namespace": [], "interrupt_id": id, "response": response });
    assert_eq!(command(&served, thread, "input.respond", answer.clone()).await["type"], "success");
    let whole = frames(&served, thread, &all, |frame| is_lifecycle(frame, "completed")).await;
    assert_eq!(whole[..first.len()], first[..]);
    assert!(whole.iter().any(|frame| frame["method"] == "input.answered"));
    let content: String = whole
        .iter()
        .filter_map(|frame| frame["params"]["data"]["delta"]["text"].as_str())
        .collect();
    assert!(content.ends_with("Hello from the star."), "{content}");
    let seqs: Vec<u64> = whole.iter().map(|frame| frame["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted_by(|one, next| one < next), "{seqs:?}");
    let ids: std::collections::BTreeSet<&str> =
        whole.iter().map(|frame| frame["event_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), whole.len());
    let late = command(&served, thread, "input.respond", answer).await;
    assert_eq!(late["error"], "no_such_interrupt");
    served.crash_and_start_again().await;
    let again = frames(&served, thread, &all, |frame| is_lifecycle(frame, "completed")).await;
    assert_eq!(again, whole);
    for (index, seq) in seqs.iter().enumerate().take(seqs.len() - 1) {
        let mut since = all.clone();
        since["since"] = json!(seq);
        let rest = frames(&served, thread, &since, |frame| is_lifecycle(frame, "completed")).await;
        assert_eq!(rest, whole[index + 1..], "after {seq}");
    }
    let few = json!({ "channels": ["lifecycle"] });
    let few = frames(&served, thread, &few, |frame| is_lifecycle(frame, "completed")).await;
    let wanted: Vec<Value> =
        whole.into_iter().filter(|frame| frame["method"] == "lifecycle").collect();
    assert_eq!(few, wanted);
}

/// X5
async fn a_socket_takes_commands_and_subscriptions(served: Served) {
    let thread = Uuid::now_v7();
    let url = format!("{}/threads/{thread}/stream/events", served.url.replace("http", "ws"));
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let sent = |id: u64, method: &str, params: Value| {
        Message::text(json!({ "id": id, "method": method, "params": params }).to_string())
    };
    let channels = json!({ "channels": ["lifecycle", "input"] });
    socket.send(sent(1, "subscription.subscribe", channels)).await.unwrap();
    socket
        .send(sent(2, "subscription.subscribe", json!({ "channels": ["gossip"] })))
        .await
        .unwrap();
    // The values of a command's fields, without their names.
    socket.send(Message::text(json!([3, "run.stop", {}]).to_string())).await.unwrap();
    let not_listed = json!({ "channels": "lifecycle" });
    socket.send(sent(6, "subscription.subscribe", not_listed)).await.unwrap();
    socket.send(sent(3, "run.start", start("clarify this"))).await.unwrap();
    let mut answers = Vec::new();
    let mut heard = Vec::new();
    while let Some(Ok(message)) = socket.next().await {
        let Ok(text) = message.to_text() else { continue };
        let Ok(frame) = serde_json::from_str::<Value>(text) else { continue };
        if frame["type"] != "event" {
            answers.push(frame);
            continue;
        }
        if frame["method"] == "input.requested" {
            let id = frame["params"]["data"]["interrupt_id"].clone();
            let answer = json!({ "namespace": [], "interrupt_id": id, "response": "1945" });
            socket.send(sent(4, "input.respond", answer)).await.unwrap();
        }
        let is_last = is_lifecycle(&frame, "completed");
        heard.push(frame);
        if is_last && answers.len() == 6 {
            break;
        }
    }
    let kinds: Vec<&Value> = answers.iter().map(|answer| &answer["type"]).collect();
    assert_eq!(kinds, ["success", "error", "error", "error", "success", "success"], "{answers:#?}");
    assert_eq!(answers[1]["error"], "invalid_argument");
    assert_eq!(answers[2]["message"], "the command must be an object");
    let why = "channels: invalid type: string \"lifecycle\", expected a sequence";
    assert_eq!(answers[3]["message"], why);
    let words: Vec<&str> =
        heard.iter().filter_map(|frame| frame["params"]["data"]["event"].as_str()).collect();
    assert_eq!(words, ["running", "interrupted", "running", "completed"], "{heard:#?}");
    let name = answers[0]["result"]["subscription_id"].clone();
    socket
        .send(sent(5, "subscription.unsubscribe", json!({ "subscription_id": name })))
        .await
        .unwrap();
    let answer = socket.next().await.unwrap().unwrap();
    assert!(answer.to_text().unwrap().contains("\"success\""), "{answer}");
    // The same path without an upgrade is no stream.
    assert_eq!(served.get(&format!("/threads/{thread}/stream/events")).await.0, 426);
    assert_eq!(served.get("/threads/nothing/stream/events").await.0, 422);
}

/// X5
async fn a_socket_sends_events_in_their_order_whatever_is_subscribed_to(served: Served) {
    let url = format!("{}/threads/{}/stream/events", served.url, Uuid::now_v7());
    let (mut socket, _) =
        tokio_tungstenite::connect_async(url.replace("http", "ws")).await.unwrap();
    let ends = json!({ "channels": ["lifecycle"] });
    let texts = json!({ "channels": ["messages", "values", "lifecycle"] });
    let begun = ("run.start", start("hello"));
    let asked = std::iter::repeat_n([&texts, &ends], 8).flatten();
    let mut commands: Vec<(&str, Value)> =
        asked.map(|channels| ("subscription.subscribe", channels.clone())).collect();
    // Some are subscribed to before the run, and some while it is under way.
    commands.insert(8, begun);
    for (id, (method, params)) in commands.into_iter().enumerate() {
        let command = json!({ "id": id, "method": method, "params": params });
        socket.send(Message::text(command.to_string())).await.unwrap();
    }
    let mut seen = std::collections::BTreeSet::new();
    loop {
        let message = socket.next().await.unwrap().unwrap();
        let Ok(frame) = serde_json::from_str::<Value>(message.to_text().unwrap()) else { continue };
        if frame["type"] != "event" {
            continue;
        }
        let seq = frame["seq"].as_u64().unwrap();
        // What was sent to one subscription may be sent again for another.
        assert!(seen.contains(&seq) || seen.last().is_none_or(|last| *last < seq), "{frame}");
        seen.insert(seq);
        if is_lifecycle(&frame, "completed") {
            break;
        }
    }
    assert!(seen.len() > 6, "{seen:?}");
}

/// X5
async fn commands_read_states_and_report_errors(served: Served) {
    let thread = Uuid::now_v7();
    let lacking = command(&served, thread, "state.get", json!({ "namespace": [] })).await;
    assert_eq!(
        (&lacking["type"], &lacking["error"]),
        (&json!("error"), &json!("invalid_argument"))
    );
    let begun = command(&served, thread, "run.start", start("hello")).await;
    let run = begun["result"]["run_id"].as_str().unwrap();
    served.get(&format!("/threads/{thread}/runs/{run}/join")).await;
    let state =
        command(&served, thread, "state.get", json!({ "namespace": [], "keys": ["answer"] })).await;
    assert_eq!(state["result"]["values"], json!({ "answer": "Hello from the star." }));
    let listed = command(&served, thread, "state.listCheckpoints", json!({ "limit": 100 })).await;
    let points = listed["result"]["checkpoints"].as_array().unwrap().clone();
    assert_eq!(points[0]["id"], state["result"]["checkpoint"]["id"]);
    let first = points.last().unwrap()["id"].clone();
    let forked = command(&served, thread, "state.fork", json!({ "checkpoint_id": first })).await;
    assert_eq!(forked["result"]["thread_id"], thread.to_string(), "{forked}");
    let tree = command(&served, thread, "agent.getTree", json!({})).await;
    assert_eq!(tree["result"]["tree"]["graph_name"], "swarm");
    for (method, params, code) in [
        ("state.fork", json!({ "checkpoint_id": Uuid::nil() }), "no_such_checkpoint"),
        ("input.respond", json!({ "interrupt_id": "x", "response": 1 }), "no_such_interrupt"),
        ("subscription.subscribe", json!({ "channels": [] }), "not_supported"),
        ("run.stop", json!({}), "unknown_command"),
        ("run.start", json!({ "assistant_id": "nobody", "input": {} }), "invalid_argument"),
    ] {
        assert_eq!(command(&served, thread, method, params).await["error"], code, "{method}");
    }
}

/// X5: a command arrives while an event is read from a database that does not answer.
#[tokio::test]
async fn a_socket_loses_no_event_to_a_command() {
    let served = Served::postgres().await;
    let thread = Uuid::now_v7();
    let begun = command(&served, thread, "run.start", start("hello")).await;
    let run = begun["result"]["run_id"].as_str().unwrap();
    served.get(&format!("/threads/{thread}/runs/{run}/join")).await;
    let all = json!({ "channels": ["values", "updates", "messages", "lifecycle", "checkpoints", "tasks"] });
    let whole = frames(&served, thread, &all, |frame| is_lifecycle(frame, "completed")).await;
    let url = format!("{}/threads/{thread}/stream/events", served.url.replace("http", "ws"));
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let database = Database::open(&served.database()).await.unwrap().of_all_tenants();
    let mut locking = database.begin().await.unwrap();
    locking.execute(&query("LOCK TABLE step IN ACCESS EXCLUSIVE MODE")).await.unwrap();
    let asked = json!({ "id": 1, "method": "subscription.subscribe", "params": all });
    socket.send(Message::text(asked.to_string())).await.unwrap();
    waiting(&database, 1).await;
    let unknown = json!({ "id": 2, "method": "subscription.unsubscribe", "params": {} });
    socket.send(Message::text(unknown.to_string())).await.unwrap();
    let mut locking = Some(locking);
    let mut seen = Vec::new();
    while seen.last() != whole.last() {
        let message = socket.next().await.unwrap().unwrap();
        let Ok(frame) = serde_json::from_str::<Value>(message.to_text().unwrap()) else { continue };
        match &frame["id"] {
            id if *id == 2 => locking.take().unwrap().roll_back().await.unwrap(),
            _ if frame["type"] == "event" => seen.push(frame),
            _ => {}
        }
    }
    assert_eq!(seen, whole);
    database.close().await;
}

/// X5
async fn a_further_subscription_takes_no_event_from_one_that_is_behind(served: Served) {
    let thread = Uuid::now_v7();
    let begun = command(&served, thread, "run.start", start("hello")).await;
    let run = begun["result"]["run_id"].as_str().unwrap();
    served.get(&format!("/threads/{thread}/runs/{run}/join")).await;
    let values = json!({ "channels": ["values", "lifecycle"] });
    let ended = |frame: &Value| is_lifecycle(frame, "completed");
    let whole = frames(&served, thread, &values, ended).await;
    let wanted: Vec<Value> = whole.into_iter().filter(|one| one["method"] == "values").collect();
    assert!(wanted.len() > 3, "{wanted:#?}");
    let url = format!("{}/threads/{thread}/stream/events", served.url.replace("http", "ws"));
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let subscribe = |channel: &str| {
        let params = json!({ "channels": [channel] });
        let asked = json!({ "id": 1, "method": "subscription.subscribe", "params": params });
        Message::text(asked.to_string())
    };
    socket.send(subscribe("lifecycle")).await.unwrap();
    // The first is read to its end; the second has got nothing yet when the third is made.
    let mut heard: Vec<Value> = Vec::new();
    while heard.len() < wanted.len() {
        let message = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap();
        let message = message.unwrap().unwrap();
        let Ok(frame) = serde_json::from_str::<Value>(message.to_text().unwrap()) else { continue };
        if ended(&frame) {
            socket.send(subscribe("values")).await.unwrap();
            socket.send(subscribe("tasks")).await.unwrap();
        }
        if frame["method"] == "values" {
            heard.push(frame);
        }
    }
    assert_eq!(heard, wanted);
}
