//! The newest states that a process restored, so that the next reader of a thread folds only the steps since.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::graph::{Frontier, State};
use crate::ids::ThreadId;

const THREADS: usize = 256;

/// States of one thread: the newest, and the one before it, which listeners of a run begin with.
const STATES: usize = 2;

/// JSON bytes of all cached states. States of one thread share most of their parts.
const BYTES: usize = 64 << 20;

/// Keeps the states that were restored last, for one store.
///
/// A state is found by the thread and step that it was restored at. It counts only while the store has a step of that
/// number with the same hash, which covers all steps before it: [`restore`](super::restore) compares them on each read.
#[derive(Default)]
pub struct StateCache(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    threads: HashMap<ThreadId, Entry>,
    bytes: usize,
    /// Counts uses, so that the thread that was not used for longest goes first.
    uses: u64,
}

#[derive(Default)]
struct Entry {
    /// Oldest first.
    states: VecDeque<KnownState>,
    /// Step and JSON bytes of the newest snapshot that this process wrote.
    snapshot: Option<(u64, usize)>,
    used: u64,
}

impl Entry {
    fn bytes(&self) -> usize {
        self.states.iter().map(KnownState::bytes).sum()
    }
}

#[derive(Clone)]
pub(super) struct KnownState {
    pub(super) state: Arc<dyn Any + Send + Sync>,
    pub(super) seq: u64,
    pub(super) frontier: Frontier,
    pub(super) hash: [u8; 32],
    pub(super) snapshot_size: usize,
    pub(super) since_snapshot: usize,
}

impl KnownState {
    pub(super) fn state<S: State>(&self) -> Option<Arc<S>> {
        Arc::clone(&self.state).downcast().ok()
    }

    fn bytes(&self) -> usize {
        self.snapshot_size + self.since_snapshot
    }
}

impl StateCache {
    /// Finds the newest state of a thread at or before a step, and the newest snapshot that was written since.
    pub(super) fn find(
        &self,
        thread: ThreadId,
        at: Option<u64>,
    ) -> Option<(KnownState, Option<(u64, usize)>)> {
        let mut kept = self.0.lock();
        kept.uses += 1;
        let uses = kept.uses;
        let entry = kept.threads.get_mut(&thread)?;
        entry.used = uses;
        let known = entry.states.iter().rev().find(|known| at.is_none_or(|at| known.seq <= at))?;
        Some((known.clone(), entry.snapshot))
    }

    pub(super) fn keep(&self, thread: ThreadId, known: KnownState) {
        // A state after steps that were dropped has no hash to be checked by.
        if known.hash == [0; 32] || known.bytes() > BYTES / 2 {
            return;
        }
        let kept = &mut *self.0.lock();
        kept.uses += 1;
        let entry = kept.threads.entry(thread).or_default();
        entry.used = kept.uses;
        if entry.states.back().is_some_and(|newest| known.seq < newest.seq) {
            return;
        }
        kept.bytes -= entry.bytes();
        entry.states.retain(|other| other.seq != known.seq);
        entry.states.push_back(known);
        if entry.states.len() > STATES {
            entry.states.pop_front();
        }
        kept.bytes += entry.bytes();
        kept.shrink();
    }

    /// Notes a written snapshot, from which later restores count the deltas.
    pub(crate) fn note_snapshot(&self, thread: ThreadId, seq: u64, size: usize) {
        let kept = &mut *self.0.lock();
        let Some(entry) = kept.threads.get_mut(&thread) else { return };
        kept.bytes -= entry.bytes();
        entry.snapshot = Some((seq, size));
        for known in entry.states.iter_mut().filter(|known| known.seq == seq) {
            (known.snapshot_size, known.since_snapshot) = (size, 0);
        }
        kept.bytes += entry.bytes();
    }

    pub(super) fn forget(&self, thread: ThreadId) {
        let mut kept = self.0.lock();
        if let Some(entry) = kept.threads.remove(&thread) {
            kept.bytes -= entry.bytes();
        }
    }
}

impl Kept {
    /// Drops the least recently used threads until the rest is within the bounds.
    fn shrink(&mut self) {
        while self.threads.len() > THREADS || self.bytes > BYTES {
            let oldest = self.threads.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(thread, _)| *thread) else { return };
            self.bytes -= self.threads.remove(&oldest).map_or(0, |entry| entry.bytes());
        }
    }
}
