//! Runs without a thread of their client's: each has one of its own, which goes with it.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::body::{Asked, Body};
use super::{Face, Refusal, runs, stream, wire};
use crate::ids::ThreadId;

/// Runs of one batch at most.
const MOST: usize = 100;

pub(super) async fn create(
    State(face): State<Face>,
    Body(body): Body,
) -> Result<impl IntoResponse, Refusal> {
    let accepted = runs::accept(&face, None, &body, false).await?;
    Ok((runs::places(&accepted.run, None), Json(wire::shown_run(&accepted.run))))
}

pub(super) async fn create_and_stream(
    State(face): State<Face>,
    Body(body): Body,
) -> Result<Response, Refusal> {
    let accepted = runs::accept(&face, None, &body, true).await?;
    stream::begun(&face, accepted).await
}

pub(super) async fn create_and_wait(
    State(face): State<Face>,
    Body(body): Body,
) -> Result<Response, Refusal> {
    let accepted = runs::accept(&face, None, &body, false).await?;
    runs::waited(&face, accepted).await
}

pub(super) async fn batch(
    State(face): State<Face>,
    Body(body): Body,
) -> Result<Json<Vec<Value>>, Refusal> {
    let list =
        body.as_array().ok_or_else(|| Refusal::invalid("the body must be a list of runs"))?;
    if list.len() > MOST {
        return Err(Refusal::invalid(format!("a batch has at most {MOST} runs")));
    }
    let mut shown = Vec::with_capacity(list.len());
    for one in list {
        let thread = one.get("thread_id").and_then(Value::as_str);
        let thread = thread.and_then(|id| id.parse::<ThreadId>().ok());
        let accepted = runs::accept(&face, thread, one, false).await?;
        shown.push(wire::shown_run(&accepted.run));
    }
    Ok(Json(shown))
}

pub(super) async fn stream(
    State(face): State<Face>,
    axum::extract::Path(run): axum::extract::Path<uuid::Uuid>,
    Asked(asked): Asked<stream::Join>,
    headers: axum::http::HeaderMap,
) -> Result<Response, Refusal> {
    let found = face.service.kept().find_run(run).await?;
    let found = found.ok_or_else(|| Refusal::missing(format!("Run with ID {run} not found")))?;
    stream::joined(&face, found, asked, &headers).await
}
