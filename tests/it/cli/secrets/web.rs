//! An MCP server over HTTP that wants a token, with a tool that works and one that fails.

use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

/// What it was greeted with.
pub struct Web {
    pub url: String,
    headers: Arc<Mutex<Vec<HeaderMap>>>,
}

impl Web {
    /// Starts it on a free port, until the test ends.
    pub async fn start() -> Self {
        let headers = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&headers);
        let answered = move |headers: HeaderMap, body: Bytes| {
            kept.lock().unwrap().push(headers);
            async move { answer(&body) }
        };
        let refused = || async { StatusCode::METHOD_NOT_ALLOWED };
        let router = Router::new().route("/mcp", post(answered).get(refused).delete(refused));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, headers }
    }

    /// Asserts that every request came with the token and the header.
    pub fn assert_greeted(&self, token: &str, header: &str) {
        let all = self.headers.lock().unwrap();
        let greeted = |one: &HeaderMap| {
            one["authorization"] == format!("Bearer {token}").as_str() && one["x-token"] == header
        };
        assert!(!all.is_empty() && all.iter().all(greeted), "{all:?}");
    }
}

fn answer(body: &[u8]) -> Response {
    let request: Value = serde_json::from_slice(body).unwrap();
    let id = &request["id"];
    let result = |result: Value| {
        Json(json!({ "jsonrpc": "2.0", "id": id, "result": result })).into_response()
    };
    let words = |text: &str, failed: bool| {
        result(json!({ "content": [{ "type": "text", "text": text }], "isError": failed }))
    };
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    match request["method"].as_str().unwrap_or_default() {
        "initialize" => result(json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "web", "version": "1" },
        })),
        "tools/list" => result(json!({ "tools": [tool("look"), tool("fail")] })),
        "tools/call" if request["params"]["name"] == "look" => words("canary-said-result", false),
        "tools/call" => words("canary-said-failure", true),
        _ if id.is_null() => StatusCode::ACCEPTED.into_response(),
        _ => Json(json!({
            "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "Method not found" }
        }))
        .into_response(),
    }
}
