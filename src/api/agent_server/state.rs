//! The state of a thread, now and at earlier steps, and changes to it.

use axum::Json;
use axum::extract::{Path, State};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{Asked, Body, OfThread};
use super::{Face, Refusal, wire};
use crate::api::openapi::Forms;
use crate::ids::ThreadId;
use crate::service::{Error, Service};

/// States of one answer at most.
const MOST: u32 = 1_000;

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
    if let Some(id) = update.checkpoint_id.as_deref().or(named) {
        runtime.go_back(thread, step_of(thread, id)?).await?;
    }
    let step = runtime.edit(thread, written, update.as_node.as_deref(), &[]).await?;
    let id = wire::checkpoint_id(thread, step);
    let checkpoint = json!({ "thread_id": thread, "checkpoint_ns": "", "checkpoint_id": id });
    Ok(Json(json!({ "checkpoint": checkpoint, "configurable": checkpoint, "checkpoint_id": id })))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct History {
    limit: Option<u32>,
    before: Option<Value>,
    metadata: Option<Value>,
    checkpoint: Option<Value>,
}

pub(super) async fn history(
    State(face): State<Face>,
    OfThread(thread): OfThread,
    body: Body,
) -> Result<Json<Value>, Refusal> {
    listed(&face, thread, body.read()?).await
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct HistoryQuery {
    limit: Option<u32>,
    before: Option<String>,
}

pub(super) async fn history_by_query(
    State(face): State<Face>,
    OfThread(thread): OfThread,
    Asked(asked): Asked<HistoryQuery>,
) -> Result<Json<Value>, Refusal> {
    let before = asked.before.map(Value::String);
    listed(&face, thread, History { limit: asked.limit, before, ..History::default() }).await
}

async fn listed(face: &Face, thread: ThreadId, asked: History) -> Result<Json<Value>, Refusal> {
    let info = face.service.info(thread).await?;
    let named = |given: &Option<Value>| match given {
        None | Some(Value::Null) => Ok(None),
        Some(given) => match wire::named_step(given) {
            Some(id) => step_of(thread, id).map(Some),
            None => {
                Err(Refusal::invalid("before must be a checkpoint, its id, or a configuration"))
            }
        },
    };
    let upto = match asked.checkpoint.as_ref().and_then(wire::named_step) {
        Some(id) => Some(step_of(thread, id)? + 1),
        None => None,
    };
    let before = named(&asked.before)?.or(upto);
    let limit = asked.limit.unwrap_or(10).clamp(1, MOST);
    let mut states = face.service.checkpoints(thread, before, limit).await?;
    if let Some(source) = asked.metadata.as_ref().and_then(|wanted| wanted["source"].as_str()) {
        states.retain(|at| {
            at.row.kind.as_str() == source || (source == "update" && at.row.kind.as_str() == "edit")
        });
    }
    let (open, asking) = face.service.open_questions(&info).await?;
    let newer = match states.first() {
        Some(first) if first.row.seq < info.head => {
            face.service.checkpoint(thread, first.row.seq + 1).await.ok()
        }
        _ => None,
    };
    let shown = states.iter().enumerate().map(|(index, at)| {
        let is_head = at.row.seq == info.head;
        let next = index.checked_sub(1).and_then(|index| states.get(index)).or(newer.as_ref());
        let next = next.filter(|next| next.row.seq == at.row.seq + 1);
        if is_head {
            wire::snapshot(thread, at, &open, &asking, None)
        } else {
            wire::snapshot(thread, at, &[], &[], next)
        }
    });
    Ok(Json(shown.collect()))
}

/// Names what the routes read.
pub(super) fn forms(forms: &mut Forms) {
    forms.body::<AtNamed>("post /threads/{thread}/state/checkpoint");
    forms.body::<Update>("post /threads/{thread}/state");
    forms.body::<History>("post /threads/{thread}/history");
    forms.query::<HistoryQuery>("get /threads/{thread}/history");
}
