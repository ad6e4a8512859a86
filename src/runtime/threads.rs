//! Threads as people look at them: without servers, without a model.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::Error;
use super::report::InterruptView;
use crate::checkpoint::{
    self, Keyring, MemoryStore, NewThread, RunRow, SealedStore, StepKind, StepRow, Store,
    ThreadInfo,
};
use crate::config::{DatabaseUrl, Settings};
use crate::ids::{RunId, ThreadId};
use crate::runner::{self, StateView};
use crate::swarm::{GRAPH, GraphState};

/// A thread with its runs and open questions.
#[derive(Clone, Debug)]
pub struct ThreadView {
    pub info: ThreadInfo,
    pub runs: Vec<RunRow>,
    /// The open questions, oldest first.
    pub open: Vec<InterruptView>,
}

impl ThreadView {
    /// Reads a thread's row, runs and open questions.
    ///
    /// # Errors
    /// As [`Threads::info`](checkpoint::Threads::info).
    pub async fn read(store: &dyn Store, thread: ThreadId) -> Result<Self, checkpoint::Error> {
        let info = store.info(thread).await?;
        let runs = store.runs(thread).await?;
        let mut open = Vec::new();
        let mut next: Option<Vec<String>> = None;
        for one in checkpoint::awaited_interrupts(store, thread).await? {
            if next.is_none() {
                next = Some(next_nodes(store, thread, info.head).await?);
            }
            // A subgraph asks in a thread of its own; its agent stands in the payload, if anywhere.
            let node = next.as_ref().filter(|_| one.thread == thread);
            let node = node.and_then(|nodes| nodes.get(one.task as usize)).cloned();
            let payload: Value = one.payload.decode()?;
            let named = payload.get("agent").and_then(Value::as_str).map(str::to_owned);
            let agent = node.or(named).unwrap_or_default();
            open.push(InterruptView { id: one.id.to_string(), kind: one.kind, agent, payload });
        }
        Ok(Self { info, runs, open })
    }
}

/// Returns whether a thread's run is under way in name only: its process is known to be gone.
pub fn is_abandoned(info: &ThreadInfo) -> bool {
    info.status == checkpoint::ThreadStatus::Busy
        && info.owner.as_deref().is_none_or(runner::holder_is_dead)
}

/// One step of a thread as listed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepView {
    pub step: u64,
    pub kind: StepKind,
    pub run_id: RunId,
    /// The nodes that ran, in frontier order; empty for an input.
    pub nodes: Vec<String>,
    /// The fields of the state that they wrote, each once.
    pub wrote: Vec<String>,
    /// The nodes that run next.
    pub next: Vec<String>,
    /// JSON bytes of what was written.
    pub bytes: usize,
    pub at: DateTime<Utc>,
}

impl StepView {
    fn new(row: &StepRow) -> Result<Self, checkpoint::Error> {
        let written = row.written()?;
        let mut wrote: Vec<String> = Vec::new();
        let fields = written.iter().filter_map(|one| one.update.as_object());
        for field in fields.flat_map(|fields| fields.keys()) {
            if !wrote.contains(field) {
                wrote.push(field.clone());
            }
        }
        let nodes = match row.kind {
            StepKind::Input => Vec::new(),
            _ => written.iter().map(|one| one.node.clone()).collect(),
        };
        Ok(Self {
            step: row.seq,
            kind: row.kind,
            run_id: row.run,
            nodes,
            wrote,
            next: row.frontier()?.tasks.into_iter().map(|task| task.node).collect(),
            bytes: row.delta.to_json_bytes()?.len(),
            at: row.at,
        })
    }
}

/// Returns steps before `before` (or from the head), newest first, at most `limit`.
///
/// # Errors
/// As [`Steps::history`](checkpoint::Steps::history).
pub async fn history(
    store: &dyn Store,
    thread: ThreadId,
    before: Option<u64>,
    limit: u32,
) -> Result<Vec<StepView>, checkpoint::Error> {
    let rows = store.history(thread, before, limit).await?;
    if before.is_none() && limit > 0 {
        let info = store.info(thread).await?;
        checkpoint::check_newest(store, &info, rows.first()).await?;
    }
    rows.iter().map(StepView::new).collect()
}

/// Returns the first question of a star's thread, where its first step is kept.
///
/// # Errors
/// As [`Steps::history`](checkpoint::Steps::history), and when the step cannot be read.
pub async fn first_question(
    store: &dyn Store,
    info: &ThreadInfo,
) -> Result<Option<String>, checkpoint::Error> {
    if info.graph != GRAPH || info.head == 0 {
        return Ok(None);
    }
    let Some(row) = store.history(info.id, Some(2), 1).await?.pop() else { return Ok(None) };
    let written = row.written()?;
    let asked = written.first().and_then(|input| input.update.get("input_request"));
    Ok(asked.and_then(Value::as_str).map(str::to_owned))
}

async fn next_nodes(
    store: &dyn Store,
    thread: ThreadId,
    head: u64,
) -> Result<Vec<String>, checkpoint::Error> {
    let newest = history(store, thread, Some(head + 1), 1).await?;
    Ok(newest.into_iter().next().map(|step| step.next).unwrap_or_default())
}

/// Reads the state of a star's thread at a step without opening servers or a model.
///
/// # Errors
/// As [`crate::checkpoint::restore`].
pub async fn read_state(
    store: &dyn Store,
    thread: ThreadId,
    at: Option<u64>,
) -> Result<StateView<GraphState>, checkpoint::Error> {
    let standing = checkpoint::restore::<GraphState>(store, thread, at).await?;
    let next = standing.frontier.tasks.into_iter().map(|task| task.node).collect();
    Ok(StateView { info: standing.info, seq: standing.seq, state: standing.state, next })
}

/// Returns the keys that the settings name; none: nothing is encrypted.
///
/// # Errors
/// [`checkpoint::Error::Keys`].
pub fn keyring(settings: &Settings) -> Result<Option<Keyring>, Error> {
    let mut keys = Vec::new();
    for key in &settings.encryption.keys {
        keys.push((key.name.clone(), key.expose().map_err(checkpoint::Error::Keys)?));
    }
    Ok(if keys.is_empty() { None } else { Some(Keyring::new(keys)?) })
}

/// Opens the store that the settings name, behind encryption where they name keys, and nothing else.
///
/// # Errors
/// As [`crate::checkpoint::open`], and [`checkpoint::Error::Keys`].
pub async fn open_store(settings: &Settings) -> Result<Arc<dyn Store>, Error> {
    let store = checkpoint::open(settings.store.database.expose()).await?;
    Ok(match keyring(settings)? {
        None => store,
        Some(keys) => Arc::new(SealedStore::new(store, keys)),
    })
}

/// Opens the store that the settings name to read what is there; none is made.
///
/// The usual one that was never made is an empty one; any other is a name that was mistyped.
///
/// # Errors
/// As [`open_store`], and [`checkpoint::Error::NoDatabase`] where there is none.
pub async fn open_store_to_read(settings: &Settings) -> Result<Arc<dyn Store>, Error> {
    let url = settings.store.database.expose();
    match checkpoint::is_there(url).map_err(checkpoint::Error::from)? {
        true => open_store(settings).await,
        false if settings.store.database == DatabaseUrl::in_data_directory() => {
            Ok(Arc::new(MemoryStore::new()))
        }
        false => {
            let url = checkpoint::redact_url(url);
            Err(checkpoint::Error::NoDatabase { url }.into())
        }
    }
}

/// Makes a thread whose history up to `at` is shared with `source`.
///
/// # Errors
/// As [`Threads::fork`](checkpoint::Threads::fork).
pub async fn fork(
    store: &dyn Store,
    source: ThreadId,
    at: u64,
    id: ThreadId,
    title: Option<String>,
) -> Result<ThreadInfo, checkpoint::Error> {
    store.check_keys().await?;
    let info = store.info(source).await?;
    let row = store.history(source, Some(at.saturating_add(1)), 1).await?.pop();
    if at > 0 && row.is_none_or(|row| row.seq != at) {
        // Beyond the head, or dropped: then nobody knows any more what ran next.
        return Err(checkpoint::Error::UnknownStep { thread: source, seq: at, head: info.head });
    }
    if info.graph == GRAPH {
        // A damaged one leaves no thread behind that nobody could continue with.
        checkpoint::restore::<GraphState>(store, source, Some(at)).await?;
    }
    let new = NewThread {
        id,
        graph: info.graph,
        title,
        root: None,
        namespace: String::new(),
        tenant: info.tenant,
    };
    store.fork(source, at, new).await
}

/// Drops all but the newest `keep` steps of a star's thread; returns the first step that is kept.
///
/// `None` when the thread is not longer than that.
///
/// # Errors
/// As [`runner::compact`].
pub async fn compact(
    store: &dyn Store,
    thread: ThreadId,
    keep: u64,
) -> Result<Option<u64>, checkpoint::Error> {
    runner::compact::<GraphState>(store, thread, keep).await
}
