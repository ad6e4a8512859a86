//! The model of the measured server: it answers at once, or one word after another where it is asked to go slowly.
//!
//! A word of a slow answer is the time at which it was sent, so that the one who reads it knows how long it took.

use std::convert::Infallible;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::StreamExt as _;
use serde_json::{Value, json};

/// What a question says that wants a slow answer; the number of its words follows.
pub const SLOWLY: &str = "slowly, words: ";

/// How long it is from one word to the next.
const BETWEEN: Duration = Duration::from_secs(1);

const ANSWER: &str = "Hello from the star.";

/// Starts the model at a port, a free one where it is 0, and returns its address.
pub async fn start(port: u16) -> String {
    let models = json!({ "object": "list", "data": [{ "id": "scripted", "object": "model" }] });
    let app = Router::new()
        .route("/v1/models", get(move || async move { Json(models.clone()) }))
        .route("/v1/chat/completions", post(complete));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

/// Returns the time in microseconds.
pub fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()
}

async fn complete(headers: HeaderMap, Json(asked): Json<Value>) -> Response {
    let is_decision = headers.get("x-perihelion-role").is_some_and(|role| role == "supervisor");
    if is_decision {
        let decision = json!({
            "thought_process": "scripted", "plan": [], "selected_agents": ["qa"], "tasks": [],
            "clarification": null,
        });
        return whole(&asked, &decision.to_string());
    }
    let text = asked["messages"].to_string();
    let words = text.rsplit_once(SLOWLY).map(|(_, rest)| {
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    });
    match words {
        Some(words) => slow(words),
        None => whole(&asked, ANSWER),
    }
}

fn whole(asked: &Value, content: &str) -> Response {
    if asked["stream"] == true {
        let piece = chunk(json!({ "content": content }), None);
        return events(format!("{piece}{}data: [DONE]\n\n", chunk(json!({}), Some("stop"))).into());
    }
    let message = json!({ "role": "assistant", "content": content });
    let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
    Json(completion("chat.completion", choice)).into_response()
}

/// Sends so many words.
fn slow(words: u32) -> Response {
    let pieces = futures::stream::iter(0..=words).then(move |index| async move {
        if index == words {
            return format!("{}data: [DONE]\n\n", chunk(json!({}), Some("stop")));
        }
        tokio::time::sleep(BETWEEN).await;
        chunk(json!({ "content": format!("{} ", now()) }), None)
    });
    events(Body::from_stream(pieces.map(|piece| Ok::<_, Infallible>(Bytes::from(piece)))))
}

fn events(body: Body) -> Response {
    ([("content-type", "text/event-stream")], body).into_response()
}

fn chunk(delta: Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    format!("data: {}\n\n", completion("chat.completion.chunk", choice))
}

fn completion(object: &str, choice: Value) -> Value {
    json!({
        "id": "scripted-1", "object": object, "created": 1, "model": "scripted", "choices": [choice],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
    })
}
