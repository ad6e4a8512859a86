//! An OpenAI-compatible endpoint, on this machine and over HTTP, whose vectors are those of a collection's own space.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use perihelion_embeddings::Endpoint;
use perihelion_settings::config::Embeddings;
use serde_json::{Value, json};

use crate::lsa::Lsa;

/// Serves a space until the program ends, and returns who asks it.
pub async fn serve(name: &str, lsa: Lsa) -> Endpoint {
    let router = Router::new().route("/v1/embeddings", post(embeddings)).with_state(Arc::new(lsa));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let settings = Embeddings {
        url,
        model: format!("lsa-{name}"),
        api_key: None,
        dimension: None,
        batch: 64,
        timeout: Duration::from_secs(60),
        connect_timeout: Duration::from_secs(10),
        max_retries: 0,
        backoff: Duration::from_secs(1),
        backoff_max: Duration::from_secs(1),
    };
    Endpoint::new(&settings).unwrap()
}

async fn embeddings(State(lsa): State<Arc<Lsa>>, Json(asked): Json<Value>) -> Json<Value> {
    let texts = asked["input"].as_array().expect("a list of texts");
    let text = |text: &Value| lsa.embed(text.as_str().expect("a text"));
    let data = texts.iter().map(text).enumerate();
    let data: Vec<Value> =
        data.map(|(index, embedding)| json!({ "index": index, "embedding": embedding })).collect();
    Json(json!({ "object": "list", "model": asked["model"], "data": data }))
}
