//! A scripted endpoint over HTTP: embeddings of letters, chat by role, and a record of what was asked.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

/// What was asked of the endpoint.
#[derive(Default)]
pub struct Asked {
    /// Texts of each embeddings request.
    pub embeddings: Vec<Vec<String>>,
    /// Role, stage and body of each chat request.
    pub chats: Vec<(String, String, Value)>,
}

/// What happens at an embeddings request, by its number from 0; false refuses it.
type OnEmbeddings = Arc<dyn Fn(usize) -> bool + Send + Sync>;

/// Answers a chat request: role, stage, body.
type OnChat = Arc<dyn Fn(&str, &str, &Value) -> Value + Send + Sync>;

#[derive(Clone)]
struct Script {
    asked: Arc<Mutex<Asked>>,
    on_embeddings: OnEmbeddings,
    on_chat: OnChat,
}

pub struct Endpoint {
    pub url: String,
    pub asked: Arc<Mutex<Asked>>,
}

impl Endpoint {
    pub async fn start(on_embeddings: OnEmbeddings, on_chat: OnChat) -> Self {
        let asked = Arc::new(Mutex::new(Asked::default()));
        let script = Script { asked: Arc::clone(&asked), on_embeddings, on_chat };
        let app = Router::new()
            .route("/v1/embeddings", post(embeddings))
            .route("/v1/chat/completions", post(chat))
            .with_state(script);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, asked }
    }

    /// Answers everything: descriptions, rankings that turn the order around, and answers that cite the first passage.
    pub async fn willing() -> Self {
        Self::start(Arc::new(|_| true), Arc::new(willing)).await
    }
}

pub fn willing(role: &str, stage: &str, body: &Value) -> Value {
    match (role, stage) {
        ("summarizer", _) => {
            json!({ "title": "A paper", "summary": "It says something.", "type": "paper", "topics": ["rent"] })
        }
        ("reranker", _) => json!({ "ranking": [1] }),
        ("supervisor", _) => {
            let done = body["messages"].to_string().contains("1,250 crowns, as is said");
            let agents = if done { json!(["qa"]) } else { json!(["papers"]) };
            json!({ "thought_process": "t", "plan": ["p"], "selected_agents": agents, "tasks": [], "clarification": null, "confidence": null })
        }
        ("agent", "answer") => json!("The rent is 1,250 crowns [1], as is said elsewhere [9]."),
        ("reflector", _) => {
            json!({ "status": "APPROVED", "refined_output": null, "feedback": null })
        }
        _ => json!("The rent is 1,250 crowns a month."),
    }
}

async fn embeddings(
    State(script): State<Script>,
    Json(body): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let texts: Vec<String> = body["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap().to_owned())
        .collect();
    let number = {
        let mut asked = script.asked.lock().unwrap();
        asked.embeddings.push(texts.clone());
        asked.embeddings.len() - 1
    };
    if !(script.on_embeddings)(number) {
        return (StatusCode::NOT_FOUND, Json(json!({ "error": { "message": "no such model" } })));
    }
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let mut vector = vec![0.01_f32; 26];
            for byte in text.to_lowercase().bytes().filter(u8::is_ascii_lowercase) {
                vector[usize::from(byte - b'a')] += 1.0;
            }
            json!({ "object": "embedding", "index": index, "embedding": vector })
        })
        .collect();
    (StatusCode::OK, Json(json!({ "object": "list", "data": data, "model": body["model"] })))
}

async fn chat(
    State(script): State<Script>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Json<Value> {
    let header = |name: &str| {
        headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let role = header("x-perihelion-role");
    let stage = header("x-perihelion-stage");
    script.asked.lock().unwrap().chats.push((role.clone(), stage.clone(), body.clone()));
    let content = match (script.on_chat)(&role, &stage, &body) {
        Value::String(text) => text,
        data => data.to_string(),
    };
    // A streamed answer may come whole.
    Json(json!({
        "id": "1", "object": "chat.completion", "created": 1, "model": "scripted",
        "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": content } }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
    }))
}
