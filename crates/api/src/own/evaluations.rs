//! Data sets from threads, and recorded model calls tried with another prompt. Evaluations themselves are items.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::http::{Body, JsonResult, OfThread, Query, Refusal, ResponseResult};
use perihelion_engine::ids::ThreadId;
use perihelion_service::Service;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Source {
    /// All turns of this thread; by default, the turns with feedback of all threads.
    thread: Option<Uuid>,
}

pub(super) async fn data(
    service: State<Service>,
    Query(Source { thread }): Query<Source>,
) -> ResponseResult {
    let thread = thread.map(ThreadId);
    if let Some(thread) = thread {
        service.info(thread).await?;
    }
    let lines = service.runtime().threads().data_set(service.kept(), thread).await?;
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"data.jsonl\""),
    ];
    Ok((headers, lines).into_response())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Trial {
    /// Number of the run; the newest by default.
    run: Option<u32>,
    /// The span of the model call.
    span_id: String,
    /// The system prompt in place of the recorded one.
    prompt: String,
}

/// Sends the request of a recorded model call again with another system prompt; nothing is stored.
pub(super) async fn again(
    service: State<Service>,
    OfThread(thread): OfThread,
    Body(Trial { run, span_id, prompt }): Body<Trial>,
) -> JsonResult {
    let answer = service.ask_again(thread, run, &span_id, prompt).await?;
    let missing =
        || Refusal::missing(format!("the trace has no model call with this ID: {span_id}"));
    Ok(Json(json!(answer.ok_or_else(missing)?)))
}
