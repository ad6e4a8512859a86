//! Threads: made, looked at, changed, copied, deleted.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::wire::{self, Fields};
use super::{AppState, Refusal};
use crate::http::{Body, JsonResult, Object, OfThread, StatusResult};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{Edit, Served};
use perihelion_service::Error;

/// Threads of one answer, and ids of one request, at most.
pub(super) const MOST: u32 = 1_000;

/// Why threads have no time to live.
const NO_TTL: &str = "ttl: threads have no time to live; set [retention] and run `perihelion threads prune`, or send \
    POST /threads/prune";

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Create {
    thread_id: Option<Uuid>,
    metadata: Option<Map<String, Value>>,
    if_exists: Option<IfExists>,
    supersteps: Vec<Object<Superstep>>,
    /// Of the protocol, and refused.
    ttl: Option<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum IfExists {
    Raise,
    DoNothing,
}

/// A step that a client writes into a new thread.
#[derive(Deserialize, JsonSchema)]
struct Superstep {
    updates: Vec<Object<StateUpdate>>,
}

#[derive(Deserialize, JsonSchema)]
struct StateUpdate {
    #[serde(default)]
    values: Value,
    as_node: Option<String>,
    /// Of the protocol, and refused.
    command: Option<Value>,
}

pub(super) async fn create(app: State<AppState>, Body(create): Body<Create>) -> JsonResult {
    refuse(create.ttl.as_ref(), NO_TTL)?;
    let thread = create.thread_id.map_or_else(ThreadId::new, ThreadId);
    let metadata = Value::Object(create.metadata.unwrap_or_default());
    let graph = app.service.graph_noted(&metadata);
    let steps = steps(graph.as_ref(), &create.supersteps)?;
    let made = app.service.create_thread(thread, &metadata).await;
    if made.as_ref().is_err_and(Error::is_of_existing_thread) {
        if create.if_exists != Some(IfExists::DoNothing) {
            let why = format!("Thread with ID {thread} already exists");
            return Err(Refusal(StatusCode::CONFLICT, why));
        }
        return get_shown(&app, thread).await;
    }
    let made = made?;
    if steps.is_empty() {
        return Ok(Json(wire::shown_thread(&made, &Fields::default())));
    }
    if let Err(refusal) = write(&app, thread, steps).await {
        // A client that tries again must not find half of a thread.
        app.service.delete_thread(thread).await?;
        return Err(refusal);
    }
    get_shown(&app, thread).await
}

/// A step to write, and its author node.
type Step = (Value, Option<String>);

fn steps(graph: &dyn Served, supersteps: &[Object<Superstep>]) -> Result<Vec<Step>, Refusal> {
    let updates = supersteps.iter().flat_map(|Object(step)| &step.updates);
    let read = updates.map(|Object(StateUpdate { values, as_node, command })| {
        let why = "supersteps: command is not supported; pass its update as values and the node as as_node";
        refuse(command.as_ref(), why)?;
        Ok((wire::read_update(graph, values)?, as_node.clone()))
    });
    read.collect()
}

async fn write(app: &AppState, thread: ThreadId, steps: Vec<Step>) -> Result<(), Refusal> {
    for (written, as_node) in steps {
        let edit = Edit { update: written, as_node, ..Edit::default() };
        app.service.runtime().edit(thread, edit).await?;
    }
    Ok(())
}

pub(super) async fn get(app: State<AppState>, OfThread(thread): OfThread) -> JsonResult {
    get_shown(&app, thread).await
}

async fn get_shown(app: &AppState, thread: ThreadId) -> JsonResult {
    Ok(Json(wire::shown_thread(&app.service.thread(thread).await?, &Fields::default())))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Update {
    metadata: Option<Map<String, Value>>,
    /// Of the protocol, and refused.
    ttl: Option<Value>,
}

pub(super) async fn update(
    app: State<AppState>,
    OfThread(thread): OfThread,
    Body(Update { metadata, ttl }): Body<Update>,
) -> JsonResult {
    refuse(ttl.as_ref(), NO_TTL)?;
    let metadata = Value::Object(metadata.unwrap_or_default());
    app.service.info_to_change(thread).await?;
    app.service.kept().note_thread(thread.0, &metadata, None, clock::now()).await?;
    get_shown(&app, thread).await
}

pub(super) async fn delete(app: State<AppState>, OfThread(thread): OfThread) -> StatusResult {
    app.service.delete_thread(thread).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Threads that are deleted, or of which the newest step alone is left.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Prune {
    thread_ids: Vec<Uuid>,
    #[serde(default)]
    strategy: Strategy,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Strategy {
    #[default]
    Delete,
    KeepLatest,
}

pub(super) async fn prune(
    app: State<AppState>,
    Body(Prune { thread_ids, strategy }): Body<Prune>,
) -> JsonResult {
    bounded(&thread_ids, "thread_ids")?;
    // All first, so that none is pruned beside one that is another user's.
    let mut found = Vec::with_capacity(thread_ids.len());
    for thread in thread_ids.into_iter().map(ThreadId) {
        match app.service.info_to_change(thread).await {
            Ok(_) => found.push(thread),
            // Another request has deleted it since.
            Err(Error::UnknownThread(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut pruned = 0;
    for thread in found {
        let done = match strategy {
            Strategy::Delete => app.service.delete_thread(thread).await,
            Strategy::KeepLatest => app.service.shorten_thread(thread).await,
        };
        match done {
            Ok(()) => pruned += 1,
            Err(Error::UnknownThread(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Json(json!({ "pruned_count": pruned })))
}

pub(super) async fn copy(app: State<AppState>, OfThread(thread): OfThread) -> JsonResult {
    let copy = app.service.copy_thread(thread).await?;
    get_shown(&app, copy).await
}

/// Reads a field that is an object or null.
pub(super) fn object(given: Option<Value>, name: &str) -> Result<Value, Refusal> {
    match given {
        None | Some(Value::Null) => Ok(json!({})),
        Some(object @ Value::Object(_)) => Ok(object),
        Some(_) => Err(Refusal::invalid(format!("{name} must be an object"))),
    }
}

/// Parts of a filter at most: each is a condition of its statement.
pub(super) const MOST_PARTS: usize = 100;

/// Reads a filter, with no more parts than a statement takes.
pub(super) fn conditions(given: Option<Map<String, Value>>, name: &str) -> Result<Value, Refusal> {
    fn parts(of: &Value) -> usize {
        1 + match of {
            Value::Object(fields) => fields.values().map(parts).sum(),
            Value::Array(items) => items.iter().map(parts).sum(),
            _ => 0,
        }
    }
    let filter = Value::Object(given.unwrap_or_default());
    if parts(&filter) > MOST_PARTS + 1 {
        let why = format!("{name}: a search compares at most {MOST_PARTS} fields and values");
        return Err(Refusal::invalid(why));
    }
    Ok(filter)
}

/// Rejects an unsupported field of the protocol, unless it is empty.
pub(super) fn refuse(given: Option<&Value>, why: &str) -> Result<(), Refusal> {
    match given {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(fields)) if fields.is_empty() => Ok(()),
        Some(_) => Err(Refusal::invalid(why)),
    }
}

/// Refuses more ids than a statement takes.
pub(super) fn bounded<T>(ids: &[T], name: &str) -> Result<(), Refusal> {
    if ids.len() <= MOST as usize {
        Ok(())
    } else {
        Err(Refusal::invalid(format!(
            "{name} has at most {MOST} IDs; send the others in further requests"
        )))
    }
}
