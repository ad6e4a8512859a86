//! The state of a thread, now and at earlier steps, and changes to it.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AppState, Refusal, wire};
use crate::http::{Body, Forms, OfThread};
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{Edit, Served};
use perihelion_service::{Error, Service};
use perihelion_star::{Message, REMOVE, REMOVE_ALL};

pub(super) async fn get(
    State(app): State<AppState>,
    OfThread(thread): OfThread,
) -> Result<Json<Value>, Refusal> {
    let head = app.service.info(thread).await?.head;
    Ok(Json(snapshot_at(&app.service, thread, head).await?))
}

/// Shows the state at a step; at the newest one, with the questions that wait there.
pub(super) async fn snapshot_at(
    service: &Service,
    thread: ThreadId,
    step: u64,
) -> Result<Value, Error> {
    let info = service.info(thread).await?;
    if step == 0 {
        return Ok(wire::empty_state());
    }
    let at = service.checkpoint(thread, step).await?;
    let (open, asking) = if info.head == step {
        service.open_questions(&info).await?
    } else {
        (Vec::new(), Vec::new())
    };
    let next =
        if step < info.head { service.checkpoint(thread, step + 1).await.ok() } else { None };
    Ok(wire::snapshot(thread, &at, &open, &asking, next.as_ref()))
}

pub(super) async fn at(
    State(app): State<AppState>,
    OfThread(thread): OfThread,
    Path((_, id)): Path<(String, String)>,
) -> Result<Json<Value>, Refusal> {
    let step = step_of(&app, thread, &id).await?;
    Ok(Json(snapshot_at(&app.service, thread, step).await?))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct AtNamed {
    checkpoint: Value,
}

pub(super) async fn at_named(
    State(app): State<AppState>,
    OfThread(thread): OfThread,
    body: Body,
) -> Result<Json<Value>, Refusal> {
    let named = body.read::<AtNamed>()?.checkpoint;
    // A checkpoint that names a thread alone is its newest one.
    let step = match wire::named_checkpoint(&named) {
        Some(id) => step_of(&app, thread, id).await?,
        None => app.service.info(thread).await?.head,
    };
    Ok(Json(snapshot_at(&app.service, thread, step).await?))
}

/// Returns the step that a checkpoint's id names.
pub(super) async fn step_of(app: &AppState, thread: ThreadId, id: &str) -> Result<u64, Error> {
    let ids = app.service.checkpoint_ids(thread).await?;
    ids.step(id).ok_or_else(|| Error::UnknownCheckpoint(id.to_owned()))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Update {
    values: Value,
    as_node: Option<String>,
    checkpoint: Option<Value>,
    checkpoint_id: Option<String>,
}

pub(super) async fn update(
    State(app): State<AppState>,
    OfThread(thread): OfThread,
    body: Body,
) -> Result<Json<Value>, Refusal> {
    let update: Update = body.read()?;
    let info = app.service.info_to_change(thread).await?;
    let runtime = app.service.runtime();
    let graph = runtime.graph(&info.graph)?;
    let written = wire::read_update(graph.as_ref(), &update.values)?;
    let named = update.checkpoint.as_ref().and_then(wire::named_checkpoint);
    let at = match update.checkpoint_id.as_deref().or(named) {
        Some(id) => Some(step_of(&app, thread, id).await?),
        None => None,
    };
    refuse_while_run(&app, thread).await?;
    check_removals(graph.as_ref(), thread, at.unwrap_or(info.head), &written).await?;
    let as_node = update.as_node.as_deref();
    let step = runtime.edit(thread, Edit { update: written, as_node, goto: &[], at }).await?;
    let id = app.service.checkpoint_ids(thread).await?.id(step);
    let checkpoint = wire::shown_checkpoint(thread, &id);
    Ok(Json(json!({ "checkpoint": checkpoint, "configurable": checkpoint, "checkpoint_id": id })))
}

/// Refuses an edit while a run of the thread is under way or waits for its turn.
async fn refuse_while_run(app: &AppState, thread: ThreadId) -> Result<(), Refusal> {
    let open = app.service.kept().open_ids(thread.0).await?;
    if open.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = open.iter().map(|(run, _)| run.to_string()).collect();
    let why = format!("Thread {thread} has in-flight runs: {}", ids.join(", "));
    Err(Refusal(StatusCode::CONFLICT, why))
}

/// Refuses to remove messages that the thread does not have at a step.
async fn check_removals(
    graph: &dyn Served,
    thread: ThreadId,
    at: u64,
    written: &Value,
) -> Result<(), Refusal> {
    let field = graph.about().messages.as_deref().unwrap_or_default();
    let written: Vec<Message> = Vec::deserialize(&written[field]).unwrap_or_default();
    if written.iter().all(|message| message.role != REMOVE) {
        return Ok(());
    }
    let there = graph.state(thread, Some(at)).await?.messages();
    match unknown_removal(&there, &written) {
        Some(id) => {
            let why =
                format!("Attempting to delete a message with an ID that doesn't exist ('{id}')");
            Err(Refusal(StatusCode::BAD_REQUEST, why))
        }
        None => Ok(()),
    }
}

/// Finds a message that is removed although neither the state nor the update has it.
fn unknown_removal<'a>(there: &[Message], written: &'a [Message]) -> Option<&'a str> {
    let is_known = |id: &str| {
        let new = written.iter().filter(|message| message.role != REMOVE);
        id == REMOVE_ALL || there.iter().chain(new).any(|message| message.id == id)
    };
    let mut removals = written.iter().filter(|message| message.role == REMOVE);
    removals.find(|message| !is_known(&message.id)).map(|message| message.id.as_str())
}

/// Names what the routes read.
pub(super) fn forms(forms: &mut Forms) {
    forms.body::<AtNamed>("post /threads/{thread}/state/checkpoint");
    forms.body::<Update>("post /threads/{thread}/state");
}
