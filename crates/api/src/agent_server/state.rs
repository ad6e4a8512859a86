//! The state of a thread, now and at earlier steps, and changes to it.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AppState, Refusal, wire};
use crate::http::{Asked, Body, JsonResult, OfThread};
use perihelion_engine::checkpoint::ThreadStatus;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{Edit, Served};
use perihelion_service::{Error, Service};
use perihelion_star::{Message, REMOVE, REMOVE_ALL};

pub(super) async fn get(
    app: State<AppState>,
    OfThread(thread): OfThread,
    Asked(depth): Asked<Depth>,
) -> JsonResult {
    let head = app.service.info(thread).await?.head;
    Ok(Json(snapshot_at(&app.service, thread, head, &depth.read()).await?))
}

/// Which states of a hosted graph are shown.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Depth {
    /// Whether the states of subgraphs are shown: `true`.
    subgraphs: Option<String>,
}

impl Depth {
    fn read(&self) -> Below {
        let word = self.subgraphs.as_deref().unwrap_or_default();
        Below { subgraphs: word.eq_ignore_ascii_case("true"), namespace: None }
    }
}

/// Which states of a hosted graph's subgraphs are shown.
#[derive(Default)]
pub(super) struct Below {
    subgraphs: bool,
    /// The subgraph whose state is shown instead.
    namespace: Option<String>,
}

/// Shows the state at a step; at the newest one, with the questions that wait there.
pub(super) async fn snapshot_at(
    service: &Service,
    thread: ThreadId,
    step: u64,
    below: &Below,
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
    let mut shown = wire::snapshot(thread, &at, &open, &asking, next.as_ref());
    let is_under_way = info.status == ThreadStatus::Busy || info.head != step;
    let is_wanted = below.subgraphs || below.namespace.is_some();
    if is_wanted || !is_under_way && !at.next.is_empty() {
        let order = json!({
            "thread": thread, "at": step, "tenant": info.tenant, "subgraphs": below.subgraphs,
            "namespace": below.namespace,
        });
        match service.runtime().graph(&info.graph)?.ask("state", order).await {
            Ok(Some(found)) => wire::show_hosted(&mut shown, found, below.namespace.is_some()),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, %thread, "could not read the tasks of a graph"),
        }
    }
    Ok(shown)
}

pub(super) async fn at(
    app: State<AppState>,
    OfThread(thread): OfThread,
    Path((_, id)): Path<(String, String)>,
    Asked(depth): Asked<Depth>,
) -> JsonResult {
    let step = step_of(&app, thread, &id).await?;
    Ok(Json(snapshot_at(&app.service, thread, step, &depth.read()).await?))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct AtNamed {
    checkpoint: Value,
    /// Whether the states of subgraphs are shown.
    #[serde(default)]
    subgraphs: bool,
}

pub(super) async fn at_named(
    app: State<AppState>,
    OfThread(thread): OfThread,
    Body(AtNamed { checkpoint: named, subgraphs }): Body<AtNamed>,
) -> JsonResult {
    let namespace = wire::named_subgraph(&named);
    let below = Below { subgraphs, namespace: namespace.map(str::to_owned) };
    // A checkpoint that names a thread alone is its newest one; so is one of a subgraph.
    let step = match wire::named_checkpoint(&named).filter(|_| namespace.is_none()) {
        Some(id) => step_of(&app, thread, id).await?,
        None => app.service.info(thread).await?.head,
    };
    Ok(Json(snapshot_at(&app.service, thread, step, &below).await?))
}

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
    app: State<AppState>,
    OfThread(thread): OfThread,
    Body(update): Body<Update>,
) -> JsonResult {
    let info = app.service.info_to_change(thread).await?;
    let runtime = app.service.runtime();
    let graph = runtime.graph(&info.graph)?;
    let written = wire::read_update(graph.as_ref(), &update.values)?;
    if let Some(namespace) = update.checkpoint.as_ref().and_then(wire::named_subgraph) {
        refuse_while_run(&app, thread).await?;
        let order = json!({
            "thread": thread, "tenant": info.tenant, "namespace": namespace, "values": written,
            "as_node": update.as_node,
        });
        if graph.ask("edit", order).await?.is_some() {
            return edited(&app, thread, info.head).await;
        }
    }
    let named = update.checkpoint.as_ref().and_then(wire::named_checkpoint);
    let at = match update.checkpoint_id.as_deref().or(named) {
        Some(id) => Some(step_of(&app, thread, id).await?),
        None => None,
    };
    refuse_while_run(&app, thread).await?;
    check_removals(graph.as_ref(), thread, at.unwrap_or(info.head), &written).await?;
    let edit = Edit { update: written, as_node: update.as_node, at, ..Edit::default() };
    let step = runtime.edit(thread, edit).await?;
    edited(&app, thread, step).await
}

async fn edited(app: &AppState, thread: ThreadId, step: u64) -> JsonResult {
    let id = app.service.checkpoint_ids(thread).await?.id(step);
    let checkpoint = wire::shown_checkpoint(thread, &id);
    Ok(Json(json!({ "checkpoint": checkpoint, "configurable": checkpoint, "checkpoint_id": id })))
}

/// How often the row of a run is looked at whose thread is at rest, every 10 ms.
const LOOKS: u32 = 100;

/// Refuses an edit while a run of the thread is in progress or waits for its turn.
///
/// A client that has read a run's question may edit before the row of the run says that it has ended.
async fn refuse_while_run(app: &AppState, thread: ThreadId) -> Result<(), Refusal> {
    for look in 0.. {
        let open = app.service.kept().open_ids(thread.0).await?;
        if open.is_empty() {
            break;
        }
        let status = app.service.info(thread).await?.status;
        if matches!(status, ThreadStatus::Busy | ThreadStatus::Queued) || look == LOOKS {
            let ids: Vec<String> = open.iter().map(|(run, _)| run.to_string()).collect();
            let why = format!("Thread {thread} has in-flight runs: {}", ids.join(", "));
            return Err(Refusal(StatusCode::CONFLICT, why));
        }
        clock::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
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

/// Finds a removed message that neither the state nor the update has.
fn unknown_removal<'a>(there: &[Message], written: &'a [Message]) -> Option<&'a str> {
    let is_known = |id: &str| {
        let new = written.iter().filter(|message| message.role != REMOVE);
        id == REMOVE_ALL || there.iter().chain(new).any(|message| message.id == id)
    };
    let mut removals = written.iter().filter(|message| message.role == REMOVE);
    removals.find(|message| !is_known(&message.id)).map(|message| message.id.as_str())
}
