//! Runs: begun in a thread or in one of their own, looked at, deleted.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::accept::accept;
use super::wire::{self, RunBody};
use super::{AppState, Refusal, stream, wait};
use crate::http::{Asked as Query, Body, Forms, MaybeOfThread, OfRun, OfThread};
use perihelion_service::kept::{Run, RunFilter, RunStatus};

/// Returns the headers by which clients find a run again.
pub(super) fn places(run: &Run, then: Option<&str>) -> HeaderMap {
    let at = format!("/threads/{}/runs/{}", run.thread, run.id);
    let mut headers = HeaderMap::new();
    let mut put = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    };
    if let Some(then) = then {
        put(header::LOCATION, format!("{at}/{then}"));
    }
    put(header::CONTENT_LOCATION, at);
    headers
}

pub(super) async fn create(
    State(app): State<AppState>,
    MaybeOfThread(thread): MaybeOfThread,
    Body(body): Body,
) -> Result<impl IntoResponse, Refusal> {
    let accepted = accept(&app, thread, &body, false).await?;
    Ok((places(&accepted.run, None), Json(wire::shown_run(&accepted.run))))
}

pub(super) async fn create_and_stream(
    State(app): State<AppState>,
    MaybeOfThread(thread): MaybeOfThread,
    Body(body): Body,
) -> Result<Response, Refusal> {
    let accepted = accept(&app, thread, &body, true).await?;
    stream::begun(&app, accepted).await
}

pub(super) async fn create_and_wait(
    State(app): State<AppState>,
    MaybeOfThread(thread): MaybeOfThread,
    Body(body): Body,
) -> Result<Response, Refusal> {
    let accepted = accept(&app, thread, &body, false).await?;
    Ok(wait::response(&app, accepted.run, accepted.stops_with_client))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct List {
    limit: Option<u32>,
    offset: Option<u32>,
    status: Option<RunStatus>,
    /// Fields that are shown, with commas or repeated; none: all.
    select: Option<String>,
}

pub(super) async fn list(
    State(app): State<AppState>,
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

pub(super) async fn get(
    State(app): State<AppState>,
    OfRun(thread, run): OfRun,
) -> Result<Json<Value>, Refusal> {
    Ok(Json(wire::shown_run(&app.service.run(thread, run).await?)))
}

pub(super) async fn delete(
    State(app): State<AppState>,
    OfRun(thread, run): OfRun,
) -> Result<StatusCode, Refusal> {
    let found = app.service.run(thread, run).await?;
    if !found.status.is_terminal() {
        let why = "the run has not ended; cancel it first";
        return Err(Refusal(StatusCode::CONFLICT, why.into()));
    }
    app.service.delete_run(&found).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn join(
    State(app): State<AppState>,
    OfRun(thread, run): OfRun,
) -> Result<Response, Refusal> {
    Ok(wait::response(&app, app.service.run(thread, run).await?, false))
}

/// Names what the routes read.
pub(super) fn forms(forms: &mut Forms) {
    for route in [
        "post /threads/{thread}/runs",
        "post /threads/{thread}/runs/stream",
        "post /threads/{thread}/runs/wait",
        "post /runs",
        "post /runs/stream",
        "post /runs/wait",
    ] {
        forms.body::<RunBody>(route);
    }
    forms.body::<Vec<RunBody>>("post /runs/batch");
    forms.query::<List>("get /threads/{thread}/runs");
    forms.query::<stream::Join>("get /threads/{thread}/runs/{run}/stream");
    forms.query::<stream::Join>("get /runs/{run}/stream");
}
