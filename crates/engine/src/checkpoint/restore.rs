//! Restores a typed state from stored rows: snapshot, later deltas, upcasters, hash chain.

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::state_cache::KnownState;
use super::{
    Cause, Encoded, Error, Loaded, PendingRow, Result, StepKind, StepRow, Steps, ThreadInfo,
    ThreadStatus, chain_hash,
};
use crate::graph::{Frontier, State, Target, Written};
use crate::ids::ThreadId;
use crate::observer::report;

/// A thread's state at a step, with the data that a writer needs to continue.
#[derive(Clone, Debug)]
pub struct Restored<S: State> {
    /// The thread.
    pub info: ThreadInfo,
    /// The state after step `seq`.
    pub state: Arc<S>,
    /// The step that `state` belongs to.
    pub seq: u64,
    /// The tasks of the next step.
    pub frontier: Frontier,
    /// Hash of step `seq`.
    pub hash: [u8; 32],
    /// Pending writes of the next step, by task.
    pub pending: Vec<(u32, Written<S>)>,
    /// JSON bytes of the newest snapshot; 0 without one.
    pub snapshot_size: usize,
    /// JSON bytes of the deltas since.
    pub since_snapshot: usize,
}

impl<S: State> Restored<S> {
    /// Returns the empty state of a thread that was just made.
    pub(crate) fn of_new(info: ThreadInfo) -> Self {
        Self {
            info,
            state: Arc::default(),
            seq: 0,
            frontier: Frontier::default(),
            hash: [0; 32],
            pending: Vec::new(),
            snapshot_size: 0,
            since_snapshot: 0,
        }
    }

    fn known(&self) -> KnownState {
        KnownState {
            state: Arc::<S>::clone(&self.state),
            seq: self.seq,
            frontier: self.frontier.clone(),
            hash: self.hash,
            snapshot_size: self.snapshot_size,
            since_snapshot: self.since_snapshot,
        }
    }
}

/// Reads a thread at a step (its head by default) and folds the stored rows into a state.
///
/// Every delta read is checked against the hash chain, the step of the snapshot included. A snapshot replaces the steps
/// before it: it has its own checksum, and they are not read. If the store's cache ([`Steps::state_cache`]) has a state
/// of the thread, only the steps after that are read.
///
/// # Errors
/// [`Error::UnknownThread`], [`Error::UnknownStep`], [`Error::Corrupt`] when the hash chain breaks or a
/// row cannot be read, [`Error::NewerState`] when a newer version wrote it.
pub async fn restore<S: State>(
    store: &dyn Steps,
    thread: ThreadId,
    at: Option<u64>,
) -> Result<Restored<S>> {
    let cache = store.state_cache();
    if let Some((known, snapshot)) = cache.find(thread, at) {
        match restore_since(store, thread, at, known, snapshot).await {
            Ok(Some(restored)) => {
                cache.keep(thread, restored.known());
                return Ok(restored);
            }
            // The thread was shortened, or deleted and made again; a read of the whole says what is wrong, if anything is.
            Ok(None)
            | Err(Error::Corrupt { .. } | Error::UnknownStep { .. } | Error::UnknownThread(_)) => {
                cache.forget(thread);
            }
            Err(error) => return Err(error),
        }
    }
    let restored = restore_from_snapshot(store, thread, at).await?;
    cache.keep(thread, restored.known());
    Ok(restored)
}

/// Folds the steps after a cached state, if the thread still has the step of that state.
async fn restore_since<S: State>(
    store: &dyn Steps,
    thread: ThreadId,
    at: Option<u64>,
    known: KnownState,
    snapshot: Option<(u64, usize)>,
) -> Result<Option<Restored<S>>> {
    let Some(mut state) = known.state::<S>() else { return Ok(None) };
    let Loaded { info, steps, pending, .. } = store.load_since(thread, known.seq, at).await?;
    let mut steps = steps.into_iter();
    let base = steps.next().filter(|row| row.seq == known.seq && row.hash == known.hash);
    let Some(base) = base else { return Ok(None) };
    let seq = at.unwrap_or(info.head);
    let mut chain = Chain { thread, last: Some(base), cut: None };
    let snapshot = snapshot.filter(|(of, _)| (known.seq..=seq).contains(of));
    let uncovered = snapshot.map_or(known.seq, |(of, _)| of);
    let folded = chain.fold(store, &mut state, steps.collect(), uncovered).await?;
    let (snapshot_size, since_snapshot) = match snapshot {
        Some((of, size)) if of > known.seq => (size, folded),
        _ => (known.snapshot_size, known.since_snapshot + folded),
    };
    let (frontier, hash) =
        if seq == known.seq { (known.frontier, known.hash) } else { chain.end(seq, false)? };
    let pending = read_pending(thread, seq, pending)?;
    Ok(Some(Restored { info, state, seq, frontier, hash, pending, snapshot_size, since_snapshot }))
}

async fn restore_from_snapshot<S: State>(
    store: &dyn Steps,
    thread: ThreadId,
    at: Option<u64>,
) -> Result<Restored<S>> {
    let Loaded { info, snapshot, steps, pending } = store.load(thread, at).await?;
    let seq = at.unwrap_or(info.head);
    let mut state = Arc::new(S::default());
    let mut snapshot_size = 0;
    let mut chain = Chain { thread, last: None, cut: None };
    if let Some(snapshot) = snapshot {
        let json = snapshot.state.to_json_bytes();
        let json = json.map_err(|error| unreadable(thread, snapshot.seq, "snapshot", error))?;
        snapshot_size = json.len();
        state =
            current_form::<S, S>(thread, snapshot.seq, snapshot.schema_version, &json, S::upcast)?
                .into();
        chain.begin_at(store, snapshot.seq).await?;
        report(|observer| observer.snapshot_read(thread, snapshot_size));
    }
    let since_snapshot = chain.fold(store, &mut state, steps, 0).await?;
    let (frontier, hash) = chain.end(seq, seq < info.head || info.status == ThreadStatus::Idle)?;
    let pending = read_pending(thread, seq, pending)?;
    Ok(Restored { info, state, seq, frontier, hash, pending, snapshot_size, since_snapshot })
}

fn read_pending<S: State>(
    thread: ThreadId,
    seq: u64,
    rows: Vec<PendingRow>,
) -> Result<Vec<(u32, Written<S>)>> {
    rows.into_iter().map(|row| Ok((row.task, from_pending(thread, seq + 1, &row.body)?))).collect()
}

/// The name under which a return to an earlier step is stored.
const FORK: &str = "__fork__";

/// Makes the stored form of a return to an earlier step.
pub fn fork_to<S: State>(to: u64) -> Written<S> {
    let goto = Some(vec![Target::send(FORK, Value::from(to))]);
    Written { node: FORK.to_owned(), update: S::Update::default(), goto, blobs: Vec::new() }
}

/// Returns the earlier step that a step returns to, if it is a return.
pub fn forked_to<S: State>(step: &StepRow, written: &[Written<S>]) -> Option<u64> {
    let goto = written.first().filter(|_| step.kind == StepKind::Fork)?.goto.as_deref()?;
    match goto {
        [Target::Send { input, .. }] => input.as_u64().filter(|to| *to < step.seq),
        _ => None,
    }
}

/// Reads the writes of a step's tasks, in frontier order, from any schema version.
///
/// # Errors
/// [`Error::Corrupt`] when the row cannot be read, [`Error::NewerState`] when a newer version wrote it.
pub fn read_delta<S: State>(thread: ThreadId, step: &StepRow) -> Result<Vec<Written<S>>> {
    read_writes::<S>(thread, step.seq, step.schema_version, &delta_of(thread, step)?)
}

fn delta_of(thread: ThreadId, step: &StepRow) -> Result<Cow<'_, [u8]>> {
    let json = step.delta.to_json_bytes();
    json.map_err(|error| unreadable(thread, step.seq, "delta", error))
}

/// Names the step that cannot be read; a step whose key is missing is not damaged.
fn unreadable(thread: ThreadId, seq: u64, what: &str, error: Error) -> Error {
    match error {
        Error::NoKey { .. } => error,
        other => Error::corrupt(thread, seq, format!("its {what} cannot be read: {other}")),
    }
}

pub(crate) fn frontier_of(thread: ThreadId, step: &StepRow) -> Result<Frontier> {
    step.frontier().map_err(|error| unreadable(thread, step.seq, "frontier", error))
}

struct Chain {
    thread: ThreadId,
    last: Option<StepRow>,
    /// The step of the snapshot, if earlier steps were dropped.
    cut: Option<u64>,
}

impl Chain {
    /// Begins at the step of a snapshot, which carries the hash and the frontier that the snapshot lacks.
    async fn begin_at(&mut self, store: &dyn Steps, seq: u64) -> Result<()> {
        let mut rows = store.history(self.thread, Some(seq + 1), 2).await?.into_iter();
        match rows.next().filter(|row| row.seq == seq) {
            None => self.cut = Some(seq),
            Some(base) => {
                self.last = rows.next();
                if self.last.is_some() || seq == 1 {
                    let json = base.delta.to_json_bytes()?;
                    self.verify(&base, &json)?;
                }
                self.last = Some(base);
            }
        }
        Ok(())
    }

    /// Follows the chain along steps and merges their writes into a state; returns the JSON bytes of the steps after
    /// `uncovered`.
    async fn fold<S: State>(
        &mut self,
        store: &dyn Steps,
        state: &mut Arc<S>,
        steps: Vec<StepRow>,
        uncovered: u64,
    ) -> Result<usize> {
        let thread = self.thread;
        report(|observer| observer.steps_folded(thread, steps.len()));
        let mut bytes = 0;
        // What came before the newest return to an earlier step is checked, and not folded.
        let fork = steps.iter().rev().find(|step| step.kind == StepKind::Fork).map(|step| step.seq);
        for step in steps {
            if self.last.as_ref().is_some_and(|last| step.seq <= last.seq) {
                continue;
            }
            let json = delta_of(thread, &step)?;
            self.verify(&step, &json)?;
            if step.seq > uncovered {
                bytes += json.len();
            }
            if fork.is_none_or(|fork| fork <= step.seq) {
                let version = step.schema_version;
                let written = read_writes::<S>(thread, step.seq, version, &json)?;
                if let Some(to) = forked_to(&step, &written) {
                    *state = Box::pin(restore::<S>(store, thread, Some(to))).await?.state;
                }
                let state = Arc::make_mut(state);
                written.into_iter().for_each(|one| state.apply(one.update));
            }
            drop(json);
            self.last = Some(step);
        }
        Ok(bytes)
    }

    /// Checks a step against its predecessor; the first one after a cut has no predecessor.
    fn verify(&self, step: &StepRow, json: &[u8]) -> Result<()> {
        let previous = match &self.last {
            Some(last) if last.seq + 1 == step.seq => last.hash,
            None if step.seq == 1 => [0; 32],
            None if self.cut.is_some_and(|cut| cut + 1 == step.seq) => return Ok(()),
            last => {
                let missing = last.as_ref().map_or(1, |last| last.seq + 1);
                return Err(Error::missing(self.thread, missing));
            }
        };
        if chain_hash(&previous, step.seq, json, &step.frontier) == step.hash {
            return Ok(());
        }
        Err(Error::unfit(self.thread, step.seq))
    }

    /// Returns the frontier and the hash at the end, which must be the wanted step.
    ///
    /// At a cut the frontier is unknown, which matters only if tasks would run from there.
    fn end(self, seq: u64, may_be_cut: bool) -> Result<(Frontier, [u8; 32])> {
        let thread = self.thread;
        match self.last {
            Some(last) if last.seq == seq => Ok((frontier_of(thread, &last)?, last.hash)),
            None if seq == 0 || (self.cut == Some(seq) && may_be_cut) => {
                Ok((Frontier::default(), [0; 32]))
            }
            last => {
                let missing = last.map_or(seq, |last| last.seq + 1);
                Err(Error::missing(thread, missing))
            }
        }
    }
}

/// Reads a pending write, whatever schema version wrote it.
fn from_pending<S: State>(thread: ThreadId, step: u64, body: &Encoded) -> Result<Written<S>> {
    let unreadable = |error: Cause| {
        Error::corrupt(thread, step, format!("a pending write cannot be read: {error}"))
    };
    let (version, written): (u32, Value) =
        body.decode().map_err(|error| unreadable(error.into()))?;
    let json = serde_json::to_vec(&[written]).map_err(Error::Encode)?;
    let mut list = read_writes::<S>(thread, step, version, &json)?;
    list.pop().ok_or_else(|| unreadable("it is empty".into()))
}

/// Migrates the updates in a list of what tasks wrote.
fn upcast_writes<S: State>(version: u32, mut stored: Value) -> Result<Value, Cause> {
    for one in stored.as_array_mut().ok_or("a delta is not a list")? {
        if let Some(update) = one.get_mut("u") {
            *update = S::upcast(version, update.take())?;
        }
    }
    Ok(stored)
}

fn read_writes<S: State>(
    thread: ThreadId,
    seq: u64,
    version: u32,
    json: &[u8],
) -> Result<Vec<Written<S>>> {
    current_form::<S, _>(thread, seq, version, json, upcast_writes::<S>)
}

/// Reads what was stored under a schema version, and migrates it first if the version is older.
fn current_form<S: State, T: DeserializeOwned>(
    thread: ThreadId,
    seq: u64,
    version: u32,
    json: &[u8],
    upcast: impl Fn(u32, Value) -> Result<Value, Cause>,
) -> Result<T> {
    if version > S::SCHEMA_VERSION {
        return Err(Error::NewerState { thread, found: version, known: S::SCHEMA_VERSION });
    }
    let unreadable = |error: Cause| Error::corrupt(thread, seq, error);
    if version == S::SCHEMA_VERSION {
        return serde_json::from_slice(json).map_err(|error| unreadable(error.into()));
    }
    let mut value = serde_json::from_slice(json).map_err(|error| unreadable(error.into()))?;
    for older in version..S::SCHEMA_VERSION {
        value = upcast(older, value).map_err(unreadable)?;
    }
    serde_json::from_value(value).map_err(|error| unreadable(error.into()))
}
