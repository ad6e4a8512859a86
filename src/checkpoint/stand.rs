//! Stands a typed state up from stored rows: snapshot, later deltas, upcasters, hash chain.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::{Error, Loaded, StepRow, Store, ThreadInfo, chain_hash};
use crate::graph::{Frontier, State, Written};
use crate::ids::ThreadId;

/// A thread's state at a step, with what a writer needs to go on from there.
#[derive(Clone, Debug)]
pub struct Standing<S: State> {
    pub info: ThreadInfo,
    pub state: Arc<S>,
    /// The step that `state` belongs to.
    pub seq: u64,
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

/// Reads a thread at a step (its head by default) and folds the stored rows into a state.
///
/// # Errors
/// [`Error::UnknownThread`], [`Error::UnknownStep`], [`Error::Corrupt`] when the hash chain breaks or a
/// row cannot be read, [`Error::NewerState`] when a newer version wrote it.
pub async fn stand_up<S: State>(
    store: &dyn Store,
    thread: ThreadId,
    at: Option<u64>,
) -> Result<Standing<S>, Error> {
    let Loaded { info, snapshot, mut steps, pending } = store.load(thread, at).await?;
    let seq = at.unwrap_or(info.head);
    let mut snapshot_size = 0;
    let mut state = S::default();
    let mut base = None;
    if let Some(snapshot) = snapshot {
        let json = snapshot.state.to_json_bytes()?;
        snapshot_size = json.len();
        state = current_form::<S, S>(thread, snapshot.seq, snapshot.schema_version, &json)?;
        if steps.first().is_none_or(|first| first.seq > snapshot.seq) {
            base = store.history(thread, Some(snapshot.seq + 1), 1).await?.pop();
        }
    }
    steps.retain(|step| step.seq > base.as_ref().map_or(0, |row: &StepRow| row.seq));
    let mut last: Option<StepRow> = base;
    let mut since_snapshot = 0;
    for step in steps {
        let json = step.delta.to_json_bytes()?;
        verify(thread, last.as_ref(), &step, &json)?;
        since_snapshot += json.len();
        for one in current_form::<S, Vec<Written<S>>>(thread, step.seq, step.schema_version, &json)?
        {
            state.apply(one.update);
        }
        drop(json);
        last = Some(step);
    }
    let (frontier, hash) = match last {
        None => (Frontier::default(), [0; 32]),
        Some(step) => {
            let frontier = serde_json::from_slice(&step.frontier).map_err(|error| {
                corrupt(thread, step.seq, format!("its frontier cannot be read: {error}"))
            })?;
            (frontier, step.hash)
        }
    };
    let pending = pending
        .into_iter()
        .map(|row| Ok((row.task, row.body.decode()?)))
        .collect::<Result<Vec<_>, Error>>()?;
    Ok(Standing {
        info,
        state: Arc::new(state),
        seq,
        frontier,
        hash,
        pending,
        snapshot_size,
        since_snapshot,
    })
}

fn corrupt(thread: ThreadId, seq: u64, reason: String) -> Error {
    Error::Corrupt { thread, seq, reason }
}

/// Checks a step against its predecessor; the first row after a truncation has none to check against.
fn verify(
    thread: ThreadId,
    last: Option<&StepRow>,
    step: &StepRow,
    json: &[u8],
) -> Result<(), Error> {
    let previous = match last {
        Some(last) if last.seq + 1 == step.seq => last.hash,
        None if step.seq == 1 => [0; 32],
        Some(last) => {
            return Err(corrupt(
                thread,
                step.seq,
                format!("the steps after {} are missing", last.seq),
            ));
        }
        None => return Ok(()),
    };
    if chain_hash(&previous, step.seq, json, &step.frontier) == step.hash {
        Ok(())
    } else {
        Err(corrupt(thread, step.seq, "its hash does not fit its content".into()))
    }
}

/// What can be stored under a schema version and rewritten when the version is older.
trait Stored<S: State>: for<'de> Deserialize<'de> {
    fn upcast(version: u32, stored: Value) -> Result<Value, String>;
}

impl<S: State> Stored<S> for S {
    fn upcast(version: u32, stored: Value) -> Result<Value, String> {
        S::upcast(version, stored)
    }
}

impl<S: State> Stored<S> for Vec<Written<S>> {
    fn upcast(version: u32, mut stored: Value) -> Result<Value, String> {
        for one in stored.as_array_mut().ok_or("a delta is not a list")? {
            if let Some(update) = one.get_mut("u") {
                *update = S::upcast(version, update.take())?;
            }
        }
        Ok(stored)
    }
}

fn current_form<S: State, T: Stored<S>>(
    thread: ThreadId,
    seq: u64,
    version: u32,
    json: &[u8],
) -> Result<T, Error> {
    if version > S::SCHEMA_VERSION {
        return Err(Error::NewerState { thread, found: version, known: S::SCHEMA_VERSION });
    }
    let unreadable = |reason: String| corrupt(thread, seq, reason);
    if version == S::SCHEMA_VERSION {
        return serde_json::from_slice(json).map_err(|error| unreadable(error.to_string()));
    }
    let mut value: Value =
        serde_json::from_slice(json).map_err(|error| unreadable(error.to_string()))?;
    for older in version..S::SCHEMA_VERSION {
        value = T::upcast(older, value).map_err(unreadable)?;
    }
    serde_json::from_value(value).map_err(|error| unreadable(error.to_string()))
}
