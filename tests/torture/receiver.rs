//! The outside world: an MCP server over HTTP whose tools leave a line in a log that outlives every crash.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use perihelion::clock;
use serde_json::{Value, json};

use super::hand;
use super::jobs::{BOOK, LOOK, MAIL, RING};
use super::logs::{EFFECTS, Effect, Log};
use super::random::Random;
use super::turns::since_start;

struct Receiver {
    log: Log,
    /// Keys that were carried out, for the tool that checks them.
    known: Mutex<HashSet<String>>,
    random: Mutex<Random>,
}

/// Starts the receiver on a free port and returns its address; it ends with this process.
pub async fn start(directory: &Path, seed: u64) -> String {
    let receiver = Arc::new(Receiver {
        log: Log::open(directory, EFFECTS),
        known: Mutex::default(),
        random: Mutex::new(Random::new(seed, &[2])),
    });
    let refused = || async { StatusCode::METHOD_NOT_ALLOWED };
    let route = post(answer).get(refused).delete(refused);
    let router = Router::new().route("/{server}/mcp", route).with_state(receiver);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

async fn answer(
    State(receiver): State<Arc<Receiver>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let id = &request["id"];
    let result = |result: Value| {
        Json(json!({ "jsonrpc": "2.0", "id": id, "result": result })).into_response()
    };
    match request["method"].as_str().unwrap_or_default() {
        "initialize" => result(json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "receiver", "version": "1" },
        })),
        "tools/list" => result(json!({ "tools": tools() })),
        "tools/call" => match receiver.call(sender(&headers), &request["params"]).await {
            Some(text) => result(json!({ "content": [{ "type": "text", "text": text }] })),
            None => broken(),
        },
        method if id.is_null() || method.is_empty() => StatusCode::ACCEPTED.into_response(),
        _ => Json(json!({
            "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "Method not found" }
        }))
        .into_response(),
    }
}

fn sender(headers: &HeaderMap) -> u64 {
    let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    hand::sender(token.unwrap_or_default())
}

/// An answer that breaks off: what it would have said is lost.
pub fn broken() -> Response {
    let error = std::io::Error::other("the receiver breaks the connection");
    let parts = futures::stream::iter([Ok(Bytes::from_static(b"{")), Err(error)]);
    let body = Body::from_stream(parts);
    ([("content-type", "application/json"), ("content-length", "4096")], body).into_response()
}

fn tools() -> Value {
    let line = json!({ "line": { "type": "string" } });
    let tool = |name: &str, description: &str, properties: &Value| {
        json!({
            "name": name, "description": description,
            "inputSchema": { "type": "object", "properties": properties },
        })
    };
    let look = json!({ "kib": { "type": "integer" }, "line": { "type": "string" } });
    json!([
        tool(BOOK, "Books a line, once per key.", &line),
        tool(RING, "Rings for a line, at every call.", &line),
        tool(MAIL, "Mails a line, at every call.", &line),
        tool(LOOK, "Returns a text.", &look),
    ])
}

impl Receiver {
    /// Carries a call out; `None` when its answer is to be lost.
    async fn call(&self, process: u64, params: &Value) -> Option<String> {
        let (before, after, lost) = {
            let mut random = self.random.lock().unwrap();
            let mut pause = || if random.per_mille(250) { random.between(1, 12) } else { 0 };
            (pause(), pause(), random.per_mille(15))
        };
        let tool = params["name"].as_str().unwrap_or_default().to_owned();
        clock::sleep(Duration::from_millis(before)).await;
        let key = params["_meta"]["dev.perihelion/idempotency-key"].as_str();
        let key = key.unwrap_or_default().to_owned();
        let line = params["arguments"]["line"].as_str().unwrap_or_default().to_owned();
        let text = match &*tool {
            LOOK => {
                let kib = params["arguments"]["kib"].as_u64().unwrap_or_default();
                "0123456789abcdef".repeat(64 * kib as usize + 1)
            }
            _ => format!("{tool} {line}: done"),
        };
        {
            let mut known = self.known.lock().unwrap();
            let refused = tool == BOOK && !known.insert(key.clone());
            let at = since_start();
            self.log.write(&Effect { process, at, tool, line, key, refused, lost });
        }
        clock::sleep(Duration::from_millis(after)).await;
        (!lost).then_some(text)
    }
}
