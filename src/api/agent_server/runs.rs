//! Runs of a thread: begun, looked at, waited for, stopped.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::accept::{Accepted, accept};
use super::body::{Asked as Query, Body, OfRun, OfThread};
use super::wire::{self, RunBody};
use super::{Face, Refusal, stream};
use crate::api::openapi::Forms;
use crate::api::request_fields;
use crate::ids::ThreadId;
use crate::service::Service;
use crate::service::kept::{Cancel, Run, RunFilter, RunStatus};

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
    State(face): State<Face>,
    OfThread(thread): OfThread,
    Body(body): Body,
) -> Result<impl IntoResponse, Refusal> {
    let accepted = accept(&face, Some(thread), &body, false).await?;
    Ok((places(&accepted.run, None), Json(wire::shown_run(&accepted.run))))
}

pub(super) async fn create_and_stream(
    State(face): State<Face>,
    OfThread(thread): OfThread,
    Body(body): Body,
) -> Result<Response, Refusal> {
    let accepted = accept(&face, Some(thread), &body, true).await?;
    stream::begun(&face, accepted).await
}

pub(super) async fn create_and_wait(
    State(face): State<Face>,
    OfThread(thread): OfThread,
    Body(body): Body,
) -> Result<Response, Refusal> {
    let accepted = accept(&face, Some(thread), &body, false).await?;
    waited(&face, accepted).await
}

/// Waits for a run and answers with the state that it left, or why it failed.
pub(super) async fn waited(face: &Face, accepted: Accepted) -> Result<Response, Refusal> {
    let Accepted { run, stops_with_client, .. } = accepted;
    let guard = stops_with_client.then(|| stream::StopWithClient::new(face.service.clone(), &run));
    let values = left_by(face, &run).await?;
    if let Some(guard) = guard {
        guard.disarm();
    }
    Ok((places(&run, Some("join")), Json(values)).into_response())
}

/// Waits for a run and returns the state that it left, or why it failed.
async fn left_by(face: &Face, run: &Run) -> Result<Value, Refusal> {
    let thread = ThreadId(run.thread);
    match face.service.ended(thread, run.id).await? {
        // It was rolled back, or this server ends.
        None => Ok(json!({})),
        Some(ended) => match (ended.status, wire::failure(&ended)) {
            (RunStatus::Error | RunStatus::Timeout, Some(why)) => Ok(json!({ "__error__": why })),
            _ => {
                let mut values = state_of(&face.service, thread).await?;
                for (name, value) in request_fields::asked_for(&face.service, &ended).await? {
                    values[name] = value;
                }
                Ok(values)
            }
        },
    }
}

/// Returns the newest state of a thread, with its open questions.
pub(super) async fn state_of(service: &Service, thread: ThreadId) -> Result<Value, Refusal> {
    let view = service.thread(thread).await?;
    let mut values = view.state.as_deref().map_or_else(|| json!({}), wire::values);
    if !view.open.is_empty() {
        values["__interrupt__"] = wire::shown_interrupts(&view.open);
    }
    Ok(values)
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct List {
    limit: Option<u32>,
    offset: Option<u32>,
    status: Option<RunStatus>,
}

pub(super) async fn list(
    State(face): State<Face>,
    OfThread(thread): OfThread,
    Query(list): Query<List>,
) -> Result<Json<Vec<Value>>, Refusal> {
    face.service.info(thread).await?;
    let limit = list.limit.unwrap_or(10).clamp(1, 1_000);
    let offset = list.offset.unwrap_or(0);
    let filter = RunFilter { status: list.status, limit, offset };
    let runs = face.service.kept().runs(thread.0, &filter).await?;
    Ok(Json(runs.iter().map(wire::shown_run).collect()))
}

pub(super) async fn get(
    State(face): State<Face>,
    OfRun(thread, run): OfRun,
) -> Result<Json<Value>, Refusal> {
    Ok(Json(wire::shown_run(&face.service.run(thread, run).await?)))
}

pub(super) async fn delete(
    State(face): State<Face>,
    OfRun(thread, run): OfRun,
) -> Result<StatusCode, Refusal> {
    let found = face.service.run(thread, run).await?;
    if !found.status.is_terminal() {
        let why = "the run has not ended; cancel it first";
        return Err(Refusal(StatusCode::CONFLICT, why.into()));
    }
    face.service.delete_run(&found).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn join(
    State(face): State<Face>,
    OfRun(thread, run): OfRun,
) -> Result<Response, Refusal> {
    let run = face.service.run(thread, run).await?;
    let values = left_by(&face, &run).await?;
    Ok((places(&run, Some("join")), Json(values)).into_response())
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct HowToCancel {
    wait: Option<String>,
    action: Option<Cancel>,
}

/// Says that there is nothing to stop.
const NOTHING: &str = "No matching runs to cancel. Please verify the thread ID and run IDs are correct, and the runs \
    haven't been deleted or completed.";

pub(super) async fn cancel(
    State(face): State<Face>,
    OfRun(thread, run): OfRun,
    Query(how): Query<HowToCancel>,
) -> Result<Response, Refusal> {
    let run =
        face.service.kept().run(thread.0, run).await?.ok_or_else(|| Refusal::missing(NOTHING))?;
    let action = how.action.unwrap_or(Cancel::Interrupt);
    if face.service.cancel(&run, action).await?.is_none() {
        return Err(Refusal::missing(NOTHING));
    }
    if !how.wait.is_some_and(|wait| matches!(wait.as_str(), "1" | "true")) {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    face.service.ended(thread, run.id).await?;
    Ok((places(&run, Some("join")), Json(json!({}))).into_response())
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct CancelMany {
    thread_id: Option<Uuid>,
    run_ids: Vec<Uuid>,
    status: Option<String>,
}

pub(super) async fn cancel_many(
    State(face): State<Face>,
    Query(how): Query<HowToCancel>,
    body: Body,
) -> Result<StatusCode, Refusal> {
    let many: CancelMany = body.read()?;
    let mut runs = Vec::new();
    for id in &many.run_ids {
        runs.extend(face.service.kept().find_run(*id).await?);
    }
    if let (true, Some(thread)) = (many.run_ids.is_empty(), many.thread_id) {
        runs = face.service.kept().open_runs(thread).await?;
    }
    runs.retain(|run| many.thread_id.is_none_or(|thread| run.thread == thread));
    match many.status.as_deref() {
        Some("pending") => runs.retain(|run| run.status == RunStatus::Pending),
        Some("running") => runs.retain(|run| run.status == RunStatus::Running),
        _ => {}
    }
    // All first, so that none is stopped beside one of another user's thread.
    for run in &runs {
        face.service.user_on(ThreadId(run.thread), None).await?;
    }
    let mut stopped = 0;
    for run in &runs {
        let action = how.action.unwrap_or(Cancel::Interrupt);
        stopped += usize::from(face.service.cancel(run, action).await?.is_some());
    }
    match stopped {
        0 => Err(Refusal::missing("No runs found to cancel.")),
        _ => Ok(StatusCode::NO_CONTENT),
    }
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
    forms.body::<CancelMany>("post /runs/cancel");
    forms.query::<List>("get /threads/{thread}/runs");
    forms.query::<HowToCancel>("post /threads/{thread}/runs/{run}/cancel");
    forms.query::<HowToCancel>("post /runs/cancel");
    forms.query::<stream::Join>("get /threads/{thread}/runs/{run}/stream");
    forms.query::<stream::Join>("get /runs/{run}/stream");
}
