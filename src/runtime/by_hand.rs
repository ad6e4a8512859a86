//! What people do to a thread from outside: read it whatever its graph, change its state, end what is under way.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::Error;
use super::star_options::star_options;
use crate::agents;
use crate::checkpoint::{
    self, Loaded, RunEnd, RunStatus, Steps, Store, ThreadFilter, ThreadInfo, ThreadStatus, Threads,
};
use crate::clock;
use crate::config::Settings;
use crate::config::strict::nearest;
use crate::graph::END;
use crate::ids::{RunId, ThreadId};
use crate::runner::{self, StateView};
use crate::swarm::{GRAPH, GraphState, GraphUpdate, Star};

/// How long a thread is held to end what is under way on it.
const CANCEL_LEASE: Duration = Duration::from_secs(15);

/// How often a thread is looked at that is to come to rest.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A thread of any graph as it is stored: what is known of its state without the graph's own types.
#[derive(Clone, Debug, Serialize)]
pub struct RawState {
    pub thread_id: ThreadId,
    pub graph: String,
    pub step: u64,
    pub next: Vec<String>,
    /// The newest whole state that was kept, if one was.
    pub snapshot: Option<Value>,
    /// The step that it belongs to; 0 without one.
    pub snapshot_step: u64,
    /// What was written since, oldest first: how it is merged only the graph itself knows.
    pub updates: Vec<Value>,
}

/// Reads a thread of any graph at a step, or at its head.
///
/// # Errors
/// As [`Steps::load`], and when a row cannot be read.
pub async fn read_raw_state(
    store: &dyn Steps,
    thread: ThreadId,
    at: Option<u64>,
) -> Result<RawState, checkpoint::Error> {
    let damaged = |error: serde_json::Error| checkpoint::Error::Damaged(error.to_string());
    let Loaded { info, snapshot, steps, .. } = store.load(thread, at).await?;
    let mut raw = RawState {
        thread_id: info.id,
        graph: info.graph,
        step: at.unwrap_or(info.head),
        next: Vec::new(),
        snapshot: None,
        snapshot_step: 0,
        updates: Vec::new(),
    };
    if let Some(kept) = snapshot {
        raw.snapshot_step = kept.seq;
        raw.snapshot = Some(serde_json::from_slice(&kept.state.to_json_bytes()?).map_err(damaged)?);
    }
    for step in steps {
        raw.next = step.frontier()?.tasks.into_iter().map(|task| task.node).collect();
        if step.seq <= raw.snapshot_step {
            continue;
        }
        let written = step.written()?.into_iter();
        raw.updates.extend(
            written.map(|one| json!({ "step": step.seq, "node": one.node, "update": one.update })),
        );
    }
    Ok(raw)
}

/// Tells whether a thread is one of the star's, whose state can be read as such.
///
/// # Errors
/// As [`Threads::info`].
pub async fn is_of_star(store: &dyn Threads, thread: ThreadId) -> Result<bool, checkpoint::Error> {
    Ok(store.info(thread).await?.graph == GRAPH)
}

/// Changes a star's thread as if a node had written it; the change is a step.
///
/// # Errors
/// [`Error::Change`] for a field that there is not or a value that it cannot have; otherwise as
/// [`runner::Runner::update_state`].
pub async fn update(
    settings: &Settings,
    store: &Arc<dyn Store>,
    thread: ThreadId,
    fields: serde_json::Map<String, Value>,
    as_node: Option<&str>,
) -> Result<StateView<GraphState>, Error> {
    let known = serde_json::to_value(GraphState::default()).unwrap_or_default();
    let known: Vec<String> =
        known.as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default();
    if let Some(wrong) = fields.keys().find(|field| !known.contains(field)) {
        let near = nearest(wrong, known.iter().map(String::as_str));
        let hint = near.map_or_else(|| known.join(", "), |near| format!("did you mean {near}?"));
        return Err(Error::Change(format!("the state has no field {wrong}; {hint}")));
    }
    let update: GraphUpdate = serde_json::from_value(Value::Object(fields))
        .map_err(|error| Error::Change(error.to_string()))?;
    let star = Star::offline(star_options(settings, Arc::new(agents::kinds()), store)?)?;
    let runner = runner::Runner::new(Arc::clone(&star.graph), Arc::clone(store))
        .bounded_to(settings.limits.max_state_bytes);
    Ok(runner.update_state(thread, update, as_node.unwrap_or(END)).await?)
}

/// Ends what is under way on a thread, whatever process has it; returns who had it.
///
/// The threads of its teams are ended with it. Each is taken from that process, which can write nothing more of the run; what it had sent and not recorded
/// is of unknown outcome when the thread goes on. `None` when nothing was under way.
///
/// # Errors
/// Whatever the store reports.
pub async fn cancel(
    store: &dyn Store,
    thread: ThreadId,
) -> Result<Option<Option<String>>, checkpoint::Error> {
    let before = store.info(thread).await?;
    let is_under_way = is_going(&before);
    if is_under_way {
        end(store, thread).await?;
    }
    // Of a team's own threads some may be under way although their parent is not any more.
    let filter =
        ThreadFilter { with_children: true, root: Some(thread), ..ThreadFilter::default() };
    let mut ended = is_under_way;
    for child in store.list(&filter).await? {
        if is_going(&child) {
            end(store, child.id).await?;
            ended = true;
        }
    }
    Ok(ended.then_some(before.owner))
}

/// Waits until nothing is under way on a thread, for so long at most; returns whether it came to that.
///
/// # Errors
/// Whatever the store reports.
pub async fn at_rest_within(
    store: &dyn Store,
    thread: ThreadId,
    most: Duration,
) -> Result<bool, checkpoint::Error> {
    let begun = clock::monotonic();
    loop {
        if !is_going(&store.info(thread).await?) {
            return Ok(true);
        }
        if begun.elapsed() >= most {
            return Ok(false);
        }
        clock::sleep(LOOK_EVERY).await;
    }
}

fn is_going(info: &ThreadInfo) -> bool {
    matches!(info.status, ThreadStatus::Busy | ThreadStatus::Queued)
}

/// Takes a thread and ends its run.
async fn end(store: &dyn Store, thread: ThreadId) -> Result<(), checkpoint::Error> {
    let owner = runner::owner_name();
    let taken = store.claim(thread, &owner, CANCEL_LEASE, true).await?;
    let under_way = store.runs(thread).await?.pop().filter(|run| run.status == RunStatus::Running);
    let run = match under_way {
        Some(run) => run.id,
        None => {
            let run = RunId::new();
            store.begin_run(thread, taken.fence, run, false).await?;
            run
        }
    };
    let end = RunEnd {
        error: Some("it was cancelled by a person; resume it to go on from there"),
        finish_reason: Some("cancelled"),
        ..RunEnd::new(RunStatus::Cancelled, ThreadStatus::Failed)
    };
    store.end_run(thread, taken.fence, run, end).await
}
