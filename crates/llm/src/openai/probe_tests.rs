//! What servers on the user's machine do is found out over their own wires, as recorded from each.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use perihelion_settings::config::{Overrides, Settings};
use serde_json::{Value, json};

use super::{Abilities, Schemas, Tools, probe};

/// A server of models.
#[derive(Clone, Copy)]
struct Server {
    /// The other fields of its entry in the list of models.
    listed: &'static str,
    /// Its description of the models at a separate address.
    own: Option<(&'static str, &'static str)>,
    /// Why it refuses tools; tools that it takes are in the prompt or not.
    refuses_tools: Option<&'static str>,
    drops_tools: bool,
    enforces: bool,
    sees: bool,
    counts: bool,
    streams: bool,
}

const LLAMA: Server = Server {
    listed: r#"{"owned_by": "llamacpp", "meta": {"n_ctx": 4096, "n_ctx_train": 8192}}"#,
    own: None,
    refuses_tools: None,
    drops_tools: true,
    enforces: true,
    sees: false,
    counts: true,
    streams: true,
};

const OLLAMA: Server = Server {
    listed: r#"{"owned_by": "library"}"#,
    own: Some(("/api/ps", r#"{"models": [{"model": "m", "context_length": 8192}]}"#)),
    refuses_tools: Some("registry.ollama.ai/library/m does not support tools"),
    ..LLAMA
};

const VLLM: Server = Server {
    listed: r#"{"owned_by": "vllm", "max_model_len": 32768}"#,
    drops_tools: false,
    sees: true,
    ..LLAMA
};

const LM_STUDIO: Server = Server {
    listed: r#"{"owned_by": "organization_owner"}"#,
    own: Some(("/api/v0/models", r#"{"data": [{"id": "m", "loaded_context_length": 2048}]}"#)),
    drops_tools: false,
    counts: false,
    ..LLAMA
};

/// A gateway that takes everything and does little of it.
const PLAIN: Server =
    Server { listed: "{}", enforces: false, counts: false, streams: false, ..LLAMA };

async fn chat(State(server): State<Server>, Json(asked): Json<Value>) -> Response {
    let refusal = |status: u16, message: &str| {
        let body = json!({ "error": { "code": status, "message": message } });
        (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
    };
    let has_tools = asked["tools"].is_array();
    if let Some(why) = server.refuses_tools.filter(|_| has_tools) {
        return refusal(400, why);
    }
    if asked["messages"][0]["content"].is_array() && !server.sees {
        return refusal(
            500,
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        );
    }
    let is_schema = asked["response_format"]["type"] == "json_schema" && server.enforces;
    let text = if is_schema { r#"{ "choice" : "south" }"# } else { "one two three" };
    let prompt_tokens = if has_tools && !server.drops_tools { 120 } else { 31 };
    let usage =
        server.counts.then(|| json!({ "prompt_tokens": prompt_tokens, "completion_tokens": 5 }));
    if asked["stream"] == true && server.streams {
        let chunk = |piece: &str| {
            format!(
                "data: {}\n\n",
                json!({ "choices": [{ "delta": { "content": piece }, "finish_reason": null }] })
            )
        };
        let mut body: String = text.split_inclusive(' ').map(chunk).collect();
        let last = json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }], "usage": usage });
        body.push_str(&format!("data: {last}\n\ndata: [DONE]\n\n"));
        return ([("content-type", "text/event-stream")], Body::from(body)).into_response();
    }
    let message = json!({ "role": "assistant", "content": text });
    Json(json!({ "choices": [{ "message": message, "finish_reason": "stop" }], "usage": usage }))
        .into_response()
}

/// Serves a server of models; returns its address.
async fn serve(server: Server) -> String {
    let mut one: Value = serde_json::from_str(server.listed).unwrap();
    one["id"] = "m".into();
    let list = json!({ "object": "list", "data": [one] });
    let mut router = Router::new()
        .route("/v1/models", get(async move || Json(list)))
        .route("/v1/chat/completions", post(chat));
    if let Some((path, body)) = server.own {
        router =
            router.route(path, get(async move || ([("content-type", "application/json")], body)));
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = router.with_state(server);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("http://{address}/v1")
}

async fn probed(server: Server) -> Abilities {
    let url = serve(server).await;
    let settings = Settings::load(Overrides::default(), None, &|_| None).unwrap();
    probe(&url, &settings.models.at(&url, "m").for_role("qa")).await.unwrap()
}

/// X12
#[tokio::test]
async fn abilities_of_servers_are_told_apart() {
    let llama = Abilities {
        schemas: Schemas::Enforced,
        tools: Tools::Dropped,
        streams: true,
        counts: true,
        sees: false,
        window: Some(4096),
    };
    assert_eq!(probed(LLAMA).await, llama);
    assert!(llama.suits_compact());
    let ollama = probed(OLLAMA).await;
    assert_eq!(ollama.window, Some(8192));
    assert!(matches!(&ollama.tools, Tools::Refused(why) if why.contains("does not support tools")));
    let vllm = Abilities { tools: Tools::Read, sees: true, window: Some(32_768), ..llama.clone() };
    assert_eq!(probed(VLLM).await, vllm);
    assert!(!vllm.suits_compact());
    let studio =
        Abilities { tools: Tools::Read, counts: false, window: Some(2048), ..llama.clone() };
    assert_eq!(probed(LM_STUDIO).await, studio);
    let plain = probed(PLAIN).await;
    assert_eq!((plain.schemas, plain.streams, plain.counts), (Schemas::Ignored, false, false));
}
