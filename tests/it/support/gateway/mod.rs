//! An endpoint before a scripted model that speaks Anthropic's Messages and Gemini's `generateContent`.
//!
//! Requests are passed on as Chat Completions, so that one script serves all wires.

mod anthropic;
mod gemini;

use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A running endpoint; it ends with the async runtime it was started in.
pub struct Gateway {
    address: String,
    shared: Arc<Shared>,
}

struct Shared {
    /// Of the scripted model.
    url: String,
    client: reqwest::Client,
    sent: Mutex<Vec<Value>>,
}

/// How answers are written.
struct Wire {
    answer: fn(&Value, &Value) -> Value,
    events: fn(&Value) -> Vec<String>,
    error: fn(u16, &str) -> Value,
}

const ANTHROPIC: Wire =
    Wire { answer: anthropic::answer, events: anthropic::events, error: anthropic::error };

const GEMINI: Wire = Wire {
    answer: |answer, _| gemini::answer(answer),
    events: gemini::events,
    error: gemini::error,
};

impl Gateway {
    /// Starts an endpoint before the model at an address.
    pub async fn before(url: &str) -> Self {
        perihelion::config::tls::install();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let shared = Arc::new(Shared { url: url.to_owned(), client, sent: Mutex::default() });
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new()
            .route("/v1/messages", post(messages))
            .route("/v1beta/models/{call}", post(generate))
            .with_state(Arc::clone(&shared));
        tokio::spawn(axum::serve(listener, router).into_future());
        Self { address, shared }
    }

    /// Returns the address under which an API is spoken; Chat Completions by the model itself.
    pub fn url(&self, api: &str) -> String {
        match api {
            "anthropic" => format!("{}/v1", self.address),
            "gemini" => format!("{}/v1beta", self.address),
            _ => self.shared.url.clone(),
        }
    }

    /// Returns the bodies of the requests that were passed on, as they came.
    pub fn sent(&self) -> Vec<Value> {
        self.shared.sent.lock().unwrap().clone()
    }
}

async fn messages(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(sent): Json<Value>,
) -> Response {
    let chat = if headers.contains_key("anthropic-version") {
        anthropic::chat(&sent)
    } else {
        Err("anthropic-version: header is required".to_owned())
    };
    let is_streamed = sent["stream"] == true;
    shared.pass_on(headers, sent, chat, is_streamed, &ANTHROPIC).await
}

/// `call` is `MODEL:generateContent` or `MODEL:streamGenerateContent`.
async fn generate(
    State(shared): State<Arc<Shared>>,
    Path(call): Path<String>,
    headers: HeaderMap,
    Json(sent): Json<Value>,
) -> Response {
    let (model, method) = call.split_once(':').unwrap_or((&call, ""));
    let chat = gemini::chat(&sent, model);
    shared.pass_on(headers, sent, chat, method == "streamGenerateContent", &GEMINI).await
}

impl Shared {
    async fn pass_on(
        &self,
        mut headers: HeaderMap,
        sent: Value,
        chat: Result<Value, String>,
        is_streamed: bool,
        wire: &Wire,
    ) -> Response {
        let refused = |status: StatusCode, message: &str| {
            (status, Json((wire.error)(status.as_u16(), message))).into_response()
        };
        let mut chat = match chat {
            Ok(chat) => chat,
            Err(message) => return refused(StatusCode::BAD_REQUEST, &message),
        };
        chat["stream"] = false.into();
        self.sent.lock().unwrap().push(sent.clone());
        for header in [HOST, CONTENT_LENGTH, CONTENT_TYPE] {
            headers.remove(header);
        }
        let request = self.client.post(format!("{}/chat/completions", self.url));
        let answered = request.headers(headers).json(&chat).send().await.unwrap();
        let status = answered.status();
        let completion: Value = answered.json().await.unwrap();
        if !status.is_success() {
            return refused(status, completion["error"]["message"].as_str().unwrap_or_default());
        }
        let answer = (wire.answer)(&completion, &sent);
        if is_streamed {
            let events = (wire.events)(&answer).concat();
            ([(CONTENT_TYPE, "text/event-stream")], events).into_response()
        } else {
            Json(answer).into_response()
        }
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn push(messages: &mut Vec<Value>, role: &str, text: String, calls: Vec<Value>) {
    if text.is_empty() && calls.is_empty() {
        return;
    }
    let mut message = json!({ "role": role, "content": text });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    messages.push(message);
}

/// Cuts a text into pieces of a few characters.
fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(16).map(|piece| piece.iter().collect()).collect()
}
