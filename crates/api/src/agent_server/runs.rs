//! Runs: created in a thread or in a new one, single or in batches, read, deleted.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::accept::{accept, accept_checked, check};
use super::stream::{StopWithClient, places};
use super::wire::RunBody;
use super::{AppState, Refusal, stream, wire};
use crate::conversation::CONTINUES;
use crate::http::{
    Asked as Query, Body, JsonResult, MaybeOfThread, OfRun, OfThread, Raw, ResponseResult,
    StatusResult, uuid,
};
use crate::{event_stream, request_fields};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_service::kept::{Run, RunFilter, RunStatus};
use perihelion_service::{Finished, Service};

pub(super) async fn create(
    app: State<AppState>,
    MaybeOfThread(thread): MaybeOfThread,
    Body(body): Body<RunBody>,
) -> Result<impl IntoResponse, Refusal> {
    let accepted = accept(&app, thread, body, false).await?;
    Ok((places(&accepted.run, None), Json(wire::shown_run(&accepted.run))))
}

pub(super) async fn create_and_wait(
    app: State<AppState>,
    MaybeOfThread(thread): MaybeOfThread,
    Body(body): Body<RunBody>,
) -> ResponseResult {
    let accepted = accept(&app, thread, body, false).await?;
    Ok(response(&app, accepted.run, accepted.stops_with_client))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct List {
    limit: Option<u32>,
    offset: Option<u32>,
    status: Option<RunStatus>,
    /// Fields to show, separated by commas or repeated; all by default.
    select: Option<String>,
}

pub(super) async fn list(
    app: State<AppState>,
    OfThread(thread): OfThread,
    Query(list): Query<List>,
) -> Result<Json<Vec<Value>>, Refusal> {
    app.service.info(thread).await?;
    let limit = list.limit.unwrap_or(10).clamp(1, 1_000);
    let offset = list.offset.unwrap_or(0);
    let filter = RunFilter { status: list.status, limit, offset };
    let runs = app.service.kept().runs(thread.0, &filter).await?;
    let names = list.select.iter().flat_map(|names| names.split(','));
    let fields = wire::Fields(names.map(str::to_owned).collect());
    Ok(Json(runs.iter().map(|run| fields.only(wire::shown_run(run))).collect()))
}

pub(super) async fn get(app: State<AppState>, OfRun(thread, run): OfRun) -> JsonResult {
    Ok(Json(wire::shown_run(&app.service.run(thread, run).await?)))
}

pub(super) async fn delete(app: State<AppState>, OfRun(thread, run): OfRun) -> StatusResult {
    let found = app.service.run(thread, run).await?;
    if !found.status.is_terminal() {
        let why = "the run has not ended; cancel it first";
        return Err(Refusal(StatusCode::CONFLICT, why.into()));
    }
    app.service.delete_run(&found).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn join(app: State<AppState>, OfRun(thread, run): OfRun) -> ResponseResult {
    Ok(response(&app, app.service.run(thread, run).await?, false))
}

/// Runs of one batch at most.
const MOST_OF_BATCH: usize = 100;

pub(super) async fn batch(
    app: State<AppState>,
    Raw(body, _): Raw<Vec<RunBody>>,
) -> Result<Json<Vec<Value>>, Refusal> {
    let list =
        body.as_array().ok_or_else(|| Refusal::invalid("the body must be a list of runs"))?;
    if list.len() > MOST_OF_BATCH {
        return Err(Refusal::invalid(format!("a batch has at most {MOST_OF_BATCH} runs")));
    }
    // All first, so that none is begun beside one that is refused.
    let mut runs = Vec::with_capacity(list.len());
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
        runs.push((thread, check(&app, RunBody::read(one)?).await?));
    }
    let mut shown = Vec::with_capacity(runs.len());
    for (thread, checked) in runs {
        let accepted = accept_checked(&app, thread, checked, false).await?;
        shown.push(wire::shown_run(&accepted.run));
    }
    Ok(Json(shown))
}

pub(super) async fn stream_by_id(
    app: State<AppState>,
    Path(run): Path<String>,
    Query(asked): Query<stream::Join>,
    headers: HeaderMap,
) -> ResponseResult {
    let found = app.service.kept().find_run(uuid("run", &run)?).await?;
    let found = found.ok_or_else(|| Refusal::missing(format!("Run with ID {run} not found")))?;
    stream::joined(&app, found, asked, &headers).await
}

/// Shows a webhook a run that has ended, with the state that it left.
pub(crate) async fn called(service: &Service, run: &Run) -> Result<Value, Refusal> {
    let mut shown = wire::shown_run(run);
    shown["values"] = values_after(service, run).await?;
    shown["run_started_at"] = json!(run.created_at);
    shown["run_ended_at"] = json!(run.updated_at);
    shown["webhook_sent_at"] = json!(clock::now());
    if let Some(why) = &run.error {
        shown["error"] = why.clone();
    }
    Ok(shown)
}

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
    let Some(Finished { run: ended, state }) = ended(service, run).await? else {
        return Ok(json!({}));
    };
    if let (RunStatus::Error | RunStatus::Timeout, Some(why)) = (ended.status, &ended.error) {
        return Ok(json!({ "__error__": why }));
    }
    let mut values = match state {
        Some(state) => wire::output(&state),
        None => values_after(service, &ended).await?,
    };
    for (name, value) in request_fields::asked_for(service, &ended).await? {
        values[name] = value;
    }
    Ok(values)
}

/// Waits for the end of a run; `None` if it was rolled back, or deleted.
pub(super) async fn ended(service: &Service, run: &Run) -> Result<Option<Finished>, Refusal> {
    match service.finished(ThreadId(run.thread), run.id).await? {
        None if service.stop().is_cancelled() => {
            Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, CONTINUES.into()))
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
