//! A server that is told to end while clients follow what it does, and they continue elsewhere (X5).

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::protocol::{frames, is_lifecycle};
use super::served::Served;
use super::streams::read;
use super::{on_both, saying};

on_both!(
    a_server_that_ends_closes_its_streams_and_clients_miss_no_event_elsewhere,
    a_server_that_ends_marks_no_run_as_failed,
    a_worker_continues_the_run_of_the_only_server_that_ends_as_its_client_asked,
);

/// So long that a stream which waited for its client would hold the server up for the whole test.
const DRAIN: [(&str, &str); 1] = [("PERIHELION_SERVE_DRAIN_SEC", "3600")];

/// X5
async fn a_server_that_ends_closes_its_streams_and_clients_miss_no_event_elsewhere(served: Served) {
    let mut served = served.again_with(&DRAIN).await;
    let thread = served.thread().await;
    let channels = json!({ "channels": ["lifecycle", "tasks", "checkpoints", "updates"] });
    let socket = format!("{}/threads/{thread}/stream/events", served.url.replace("http", "ws"));
    let (mut socket, _) = tokio_tungstenite::connect_async(socket).await.unwrap();
    let subscribe = json!({ "id": 1, "method": "subscription.subscribe", "params": channels });
    socket.send(Message::text(subscribe.to_string())).await.unwrap();

    let before = served.model.requests().len();
    let mut body = saying("hang");
    body["stream_mode"] = json!(["values", "updates", "tasks", "checkpoints"]);
    let runs = format!("/threads/{thread}/runs");
    let asked = served.http.post(format!("{}{runs}/stream", served.url));
    let asked = asked.header("content-type", "application/json").body(body.to_string());
    let stream = asked.send().await.unwrap();
    served.model.wait_for_requests(before + 1).await;

    let (mut other, url) = served.another().await;
    let followed = async {
        let mut heard = Vec::new();
        while let Some(Ok(message)) = socket.next().await {
            let frame = message.to_text().ok().and_then(|text| serde_json::from_str(text).ok());
            heard.extend(frame.filter(|frame: &Value| frame["type"] == "event"));
        }
        heard
    };
    // Neither client closes anything: both streams end by the server.
    let (heard, reported, ()) = tokio::join!(read(stream, usize::MAX), followed, served.stop());
    assert_eq!(heard[0].name, "metadata", "{heard:#?}");
    assert!(reported.iter().any(|frame| is_lifecycle(frame, "running")), "{reported:#?}");

    served.url = url;
    let run = format!("{runs}/{}", heard[0].data["run_id"].as_str().unwrap());
    // It was left to the other server, which asks the model again.
    served.model.wait_for_requests(before + 2).await;
    let join = async |last: &str| {
        let asked = served.http.get(format!("{}{run}/stream", served.url));
        asked.header("last-event-id", last).send().await.unwrap()
    };
    let rest = join(&heard.last().unwrap().id).await;
    served.post(&format!("{run}/cancel?wait=true"), &json!({})).await;
    let rest = read(rest, usize::MAX).await;
    let whole = read(join("-1").await, usize::MAX).await;
    assert_eq!([heard, rest].concat(), whole);

    let id = thread.parse().unwrap();
    let is_last = |frame: &Value| frame["method"] == "lifecycle" && !is_lifecycle(frame, "running");
    let whole = frames(&served, id, &channels, is_last).await;
    assert_eq!(reported, whole[..reported.len()]);
    let mut since = channels.clone();
    since["since"] = reported.last().unwrap()["seq"].clone();
    let rest = frames(&served, id, &since, is_last).await;
    assert_eq!(rest, whole[reported.len()..]);
    other.kill().await.unwrap();
}

/// X5, X8
async fn a_server_that_ends_marks_no_run_as_failed(served: Served) {
    let mut served = served.again_with(&DRAIN).await;
    let before = served.model.requests().len();
    let ask = |path: &str, body: Value| {
        let asked = served.http.post(format!("{}{path}", served.url));
        let asked = asked.header("content-type", "application/json").body(body.to_string());
        tokio::spawn(async move { asked.send().await.unwrap() })
    };
    let response = json!({ "model": "swarm", "input": "hang" });
    let mut written = response.clone();
    written["stream"] = json!(true);
    let messages = json!([{ "role": "user", "content": "hang" }]);
    let chat = ask("/v1/chat/completions", json!({ "model": "swarm", "messages": messages }));
    let response = ask("/v1/responses", response);
    let written = ask("/v1/responses", written);
    served.model.wait_for_requests(before + 3).await;
    served.stop().await;
    let chat = chat.await.unwrap();
    assert_eq!(chat.status(), 503);
    assert!(chat.headers().contains_key("retry-after"), "{:?}", chat.headers());
    let response: Value = response.await.unwrap().json().await.unwrap();
    assert_eq!((&response["status"], &response["error"]), (&json!("in_progress"), &Value::Null));
    let written = read(written.await.unwrap(), usize::MAX).await;
    // It breaks off after its beginning; an event of the end would take the number of one that another process sends.
    let last = written.last().unwrap();
    assert_eq!(last.name, "response.content_part.added");

    served.start_again().await;
    let place = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    assert_eq!(served.get(&place).await.1["status"], "in_progress");
    let (_, cancelled) = served.post(&format!("{place}/cancel"), &json!({})).await;
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
}

/// X5
async fn a_worker_continues_the_run_of_the_only_server_that_ends_as_its_client_asked(
    served: Served,
) {
    let mut served = served.hanging_once().await;
    let thread = served.thread().await;
    let mut body = saying("hello");
    body["interrupt_before"] = json!(["qa"]);
    let (_, run) = served.post(&format!("/threads/{thread}/runs"), &body).await;
    served.model.wait_for_requests(1).await;
    served.stop().await;
    let shown = async |served: &Served| {
        let shown = served.program(&["threads", "show", &thread, "--json"]).await;
        serde_json::from_str::<Value>(&shown).unwrap()["status"].clone()
    };
    assert_eq!(shown(&served).await, "queued");
    served.program(&["worker", "--drain", "-q"]).await;
    assert_eq!(shown(&served).await, "interrupted");
    assert_eq!(served.model.requests().len(), 2, "it paused before the answer");

    served.start_again().await;
    let run = format!("/threads/{thread}/runs/{}", run["run_id"].as_str().unwrap());
    served.until_got(&run, |run| run["status"] == "success").await;
    let (_, state) = served.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(state["next"], json!(["qa"]));
}
