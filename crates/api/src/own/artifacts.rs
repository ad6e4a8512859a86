//! Large values of a thread, whole: the state shows their previews.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::json;

use crate::http::{JsonResult, OfThread, Refusal};
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::ThreadState;
use perihelion_service::Service;

async fn state_of(service: &Service, thread: ThreadId) -> Result<ThreadState, Refusal> {
    let state = service.thread(thread).await?.state;
    Ok(state.unwrap_or_else(|| service.runtime().supervisor().empty()))
}

pub(super) async fn list(service: State<Service>, OfThread(thread): OfThread) -> JsonResult {
    let state = state_of(&service, thread).await?;
    let shown = state.star().global_state.iter().map(|(key, one)| {
        json!({ "key": key, "source": one.source, "bytes": one.bytes, "preview": one.preview })
    });
    Ok(Json(json!({ "artifacts": shown.collect::<Vec<_>>() })))
}

pub(super) async fn get(
    service: State<Service>,
    OfThread(thread): OfThread,
    Path((_, key)): Path<(String, String)>,
) -> JsonResult {
    let state = state_of(&service, thread).await?;
    let found = state.star().global_state.get(&key);
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
