//! The state of a thread, now and at earlier steps, and changes to it.

use axum::Json;
use axum::extract::{Path, State};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{Body, OfThread};
use super::{Face, Refusal, wire};
use crate::openapi::Forms;
use perihelion_engine::ids::ThreadId;
use perihelion_service::{Error, Service};

pub(super) async fn get(
    State(face): State<Face>,
    OfThread(thread): OfThread,
) -> Result<Json<Value>, Refusal> {
    let head = face.service.info(thread).await?.head;
    Ok(Json(snapshot_at(&face.service, thread, head).await?))
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
    State(face): State<Face>,
    OfThread(thread): OfThread,
    Path((_, id)): Path<(String, String)>,
) -> Result<Json<Value>, Refusal> {
    let step = step_of(thread, &id)?;
    Ok(Json(snapshot_at(&face.service, thread, step).await?))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct AtNamed {
    checkpoint: Value,
}

pub(super) async fn at_named(
    State(face): State<Face>,
    OfThread(thread): OfThread,
    body: Body,
) -> Result<Json<Value>, Refusal> {
    let named = body.read::<AtNamed>()?.checkpoint;
    // A checkpoint that names a thread alone is its newest one.
    let step = match wire::named_step(&named) {
        Some(id) => step_of(thread, id)?,
        None => face.service.info(thread).await?.head,
    };
    Ok(Json(snapshot_at(&face.service, thread, step).await?))
}

/// Returns the step that a checkpoint's id names.
pub(super) fn step_of(thread: ThreadId, id: &str) -> Result<u64, Refusal> {
    wire::step_of(thread, id).ok_or_else(|| Error::UnknownCheckpoint(id.to_owned()).into())
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
    State(face): State<Face>,
    OfThread(thread): OfThread,
    body: Body,
) -> Result<Json<Value>, Refusal> {
    let update: Update = body.read()?;
    let info = face.service.info_to_change(thread).await?;
    let written = wire::state_update(&update.values, info.head).map_err(Refusal::invalid)?;
    let named = update.checkpoint.as_ref().and_then(wire::named_step);
    let runtime = face.service.runtime();
    let as_node = update.as_node.as_deref();
    let step = match update.checkpoint_id.as_deref().or(named) {
        Some(id) => runtime.edit_at(thread, step_of(thread, id)?, written, as_node).await?,
        None => runtime.edit(thread, written, as_node, &[]).await?,
    };
    let id = wire::checkpoint_id(thread, step);
    let checkpoint = json!({ "thread_id": thread, "checkpoint_ns": "", "checkpoint_id": id });
    Ok(Json(json!({ "checkpoint": checkpoint, "configurable": checkpoint, "checkpoint_id": id })))
}

/// Names what the routes read.
pub(super) fn forms(forms: &mut Forms) {
    forms.body::<AtNamed>("post /threads/{thread}/state/checkpoint");
    forms.body::<Update>("post /threads/{thread}/state");
}
