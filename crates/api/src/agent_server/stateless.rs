//! Runs without a thread of their client's: each has one of its own, which goes with it.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::body::{Asked, Body};
use super::{Face, Refusal, accept, runs, stream, wait, wire};
use perihelion_engine::ids::ThreadId;

/// Runs of one batch at most.
const MOST: usize = 100;

pub(super) async fn create(
    State(face): State<Face>,
    Body(body): Body,
) -> Result<impl IntoResponse, Refusal> {
    let accepted = accept::accept(&face, None, &body, false).await?;
    Ok((runs::places(&accepted.run, None), Json(wire::shown_run(&accepted.run))))
}

pub(super) async fn create_and_stream(
    State(face): State<Face>,
    Body(body): Body,
) -> Result<Response, Refusal> {
    let accepted = accept::accept(&face, None, &body, true).await?;
    stream::begun(&face, accepted).await
}

pub(super) async fn create_and_wait(
    State(face): State<Face>,
    Body(body): Body,
) -> Result<Response, Refusal> {
    Ok(wait::begun(&face, accept::accept(&face, None, &body, false).await?))
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
    // All first, so that none is begun beside one that is refused.
    let mut threads = Vec::with_capacity(list.len());
    for one in list {
        let thread = match one.get("thread_id") {
            None | Some(Value::Null) => None,
            Some(id) => Some(
                serde_json::from_value(id.clone())
                    .map(ThreadId)
                    .map_err(|_| Refusal::invalid("Invalid thread ID: must be a UUID"))?,
            ),
        };
        if let Some(thread) = thread {
            face.service.info(thread).await?;
        }
        let asked = wire::RunBody::read(one).map_err(Refusal::invalid)?;
        accept::check(&face, asked).await?;
        threads.push(thread);
    }
    let mut shown = Vec::with_capacity(list.len());
    for (one, thread) in list.iter().zip(threads) {
        let accepted = accept::accept(&face, thread, one, false).await?;
        shown.push(wire::shown_run(&accepted.run));
    }
    Ok(Json(shown))
}

pub(super) async fn stream(
    State(face): State<Face>,
    axum::extract::Path(run): axum::extract::Path<String>,
    Asked(asked): Asked<stream::Join>,
    headers: axum::http::HeaderMap,
) -> Result<Response, Refusal> {
    let run = uuid::Uuid::parse_str(&run)
        .map_err(|_| Refusal::invalid("Invalid run ID: must be a UUID"))?;
    let found = face.service.kept().find_run(run).await?;
    let found = found.ok_or_else(|| Refusal::missing(format!("Run with ID {run} not found")))?;
    stream::joined(&face, found, asked, &headers).await
}
