//! Large values of a thread, whole: the state shows their previews.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::json;

use crate::http::{JsonResult, OfThread, Refusal};
use perihelion_service::Service;

pub(super) async fn list(State(service): State<Service>, OfThread(thread): OfThread) -> JsonResult {
    let state = service.thread(thread).await?.state.unwrap_or_default();
    let shown = state.global_state.iter().map(|(key, one)| {
        json!({ "key": key, "source": one.source, "bytes": one.bytes, "preview": one.preview })
    });
    Ok(Json(json!({ "artifacts": shown.collect::<Vec<_>>() })))
}

pub(super) async fn get(
    State(service): State<Service>,
    OfThread(thread): OfThread,
    Path((_, key)): Path<(String, String)>,
) -> JsonResult {
    let state = service.thread(thread).await?.state.unwrap_or_default();
    let found = state.global_state.get(&key);
    let one = found.ok_or_else(|| {
        Refusal::missing(format!("the thread has no artifact with this key: {key}"))
    })?;
    let whole = service.artifact(thread, &key, one).await?;
    let mut shown =
        json!({ "key": key, "source": one.source, "bytes": one.bytes, "content": &*whole });
    if let Some(media_type) = &one.media_type {
        shown["media_type"] = json!(media_type);
        shown["encoding"] = json!("base64");
    }
    Ok(Json(shown))
}
