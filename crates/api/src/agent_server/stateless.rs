//! Several runs at once, and streams of runs that are named without their thread.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde_json::Value;

use super::{AppState, Refusal, accept, stream, wire};
use crate::http::{Asked, Body};
use perihelion_engine::ids::ThreadId;

/// Runs of one batch at most.
const MOST: usize = 100;

pub(super) async fn batch(
    State(app): State<AppState>,
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
            app.service.info(thread).await?;
        }
        accept::check(&app, wire::RunBody::read(one)?).await?;
        threads.push(thread);
    }
    let mut shown = Vec::with_capacity(list.len());
    for (one, thread) in list.iter().zip(threads) {
        let accepted = accept::accept(&app, thread, one, false).await?;
        shown.push(wire::shown_run(&accepted.run));
    }
    Ok(Json(shown))
}

pub(super) async fn stream(
    State(app): State<AppState>,
    axum::extract::Path(run): axum::extract::Path<String>,
    Asked(asked): Asked<stream::Join>,
    headers: axum::http::HeaderMap,
) -> Result<Response, Refusal> {
    let run = uuid::Uuid::parse_str(&run)
        .map_err(|_| Refusal::invalid("Invalid run ID: must be a UUID"))?;
    let found = app.service.kept().find_run(run).await?;
    let found = found.ok_or_else(|| Refusal::missing(format!("Run with ID {run} not found")))?;
    stream::joined(&app, found, asked, &headers).await
}
