//! Waits for runs: the answer begins at once, with the places of its run, and ends with the state that the run left.
//!
//! A client that was cut off, or that is let go because this process ends, finds the run again by `Location`.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::runs::places;
use super::stream::StopWithClient;
use super::{AppState, Refusal, wire};
use crate::{event_stream, request_fields};
use perihelion_engine::ids::ThreadId;
use perihelion_service::Service;
use perihelion_service::kept::{Run, RunStatus};

/// Waits for a run, and stops it if its client goes away and wants that.
pub(super) fn response(app: &AppState, run: Run, stops_with_client: bool) -> Response {
    let guard = stops_with_client.then(|| StopWithClient::new(app.service.clone(), &run));
    let headers = places(&run, Some("join"));
    let service = app.service.clone();
    let values = async move {
        let values = left_by(&service, &run).await;
        // However it ended, the client is still there.
        if let Some(guard) = guard {
            guard.disarm();
        }
        values.map_err(|Refusal(_, why)| {
            tracing::warn!(run = %run.id, why, "a response ended before its run; the client can request its Location again");
            why
        })
    };
    event_stream::json_later(headers, values)
}

/// Waits for a run and returns the state that it left, or why it failed.
async fn left_by(service: &Service, run: &Run) -> Result<Value, Refusal> {
    let Some(ended) = ended(service, run).await? else { return Ok(json!({})) };
    if let (RunStatus::Error | RunStatus::Timeout, Some(why)) = (ended.status, &ended.error) {
        return Ok(json!({ "__error__": why }));
    }
    let mut values = values_after(service, &ended).await?;
    for (name, value) in request_fields::asked_for(service, &ended).await? {
        values[name] = value;
    }
    Ok(values)
}

/// Waits for the end of a run; `None` if it was rolled back, or deleted.
pub(super) async fn ended(service: &Service, run: &Run) -> Result<Option<Run>, Refusal> {
    match service.ended(ThreadId(run.thread), run.id).await? {
        None if service.stop().is_cancelled() => {
            let why = "the server is shutting down; the run continues, so request it again";
            Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, why.into()))
        }
        ended => Ok(ended),
    }
}

/// Returns the state that a run left, with the questions that were open then.
pub(super) async fn values_after(service: &Service, run: &Run) -> Result<Value, Refusal> {
    let (state, open) = service.state_after(run).await?;
    let mut values = state.as_ref().map_or_else(|| json!({}), wire::output);
    if !open.is_empty() {
        values["__interrupt__"] = wire::shown_interrupts(&open);
    }
    Ok(values)
}
