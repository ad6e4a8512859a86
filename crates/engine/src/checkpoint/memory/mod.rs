//! Threads in this process alone: for tests, demonstrations and graphs that need no tomorrow.
//!
//! Enter at [`MemoryStore`]. Invariant: it refuses and orders exactly as the databases do; only
//! durability is missing. A commit copies the step's bytes once and never touches older steps.
//! Deliberately absent: compression, since nothing is written anywhere.

mod events;
mod outbox;
mod removal;
mod state;
mod writes;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;

use self::state::State;
use super::{
    BlobRow, Claim, Commit, EffectRow, EffectSettlement, Effects, Encoded, Error, EventPosition,
    EventRow, Events, Fence, Leases, Loaded, NewThread, OpenInterrupt, Outbox, PendingRow,
    Questions, RunEnd, RunRow, SnapshotRow, StateCache, StepRow, Steps, Store, ThreadDump,
    ThreadFilter, ThreadInfo, ThreadStatus, Threads, Transfer, Waiting, Wanted,
};
use crate::ids::{InterruptId, RunId, ThreadId};

/// A store that lives as long as the value; no call waits.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    states: StateCache,
}

impl MemoryStore {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every write checks before it changes anything, so a panic elsewhere left no half write.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Threads for MemoryStore {
    async fn create(&self, new: NewThread) -> Result<ThreadInfo, Error> {
        self.state().create(new, None)
    }

    async fn info(&self, thread: ThreadId) -> Result<ThreadInfo, Error> {
        Ok(self.state().get(thread)?.info.clone())
    }

    async fn fork(&self, source: ThreadId, at: u64, new: NewThread) -> Result<ThreadInfo, Error> {
        self.state().create(new, Some((source, at)))
    }

    async fn list(&self, filter: &ThreadFilter) -> Result<Vec<ThreadInfo>, Error> {
        Ok(self.state().list(filter))
    }

    async fn count_threads(&self) -> Result<Vec<(ThreadStatus, u64)>, Error> {
        Ok(self.state().count_threads())
    }

    async fn delete(&self, thread: ThreadId) -> Result<(), Error> {
        self.states.forget(thread);
        self.state().delete(thread, None)
    }

    async fn delete_as_seen(&self, seen: &ThreadInfo) -> Result<(), Error> {
        self.states.forget(seen.id);
        self.state().delete(seen.id, Some(seen))
    }

    async fn truncate(&self, thread: ThreadId, seq: u64) -> Result<(), Error> {
        self.state().truncate(thread, seq)
    }
}

#[async_trait]
impl Leases for MemoryStore {
    async fn claim(&self, claim: Claim<'_>) -> Result<ThreadInfo, Error> {
        self.state().claim(claim)
    }

    async fn waiting(&self, wanted: &Wanted) -> Result<Vec<Waiting>, Error> {
        Ok(self.state().waiting(wanted))
    }

    async fn renew(&self, fence: Fence, ttl: Duration) -> Result<(), Error> {
        self.state().renew(fence, ttl)
    }

    async fn begin_run(&self, fence: Fence, run: RunId, exports: bool) -> Result<RunRow, Error> {
        self.state().begin_run(fence, run, exports)
    }

    async fn end_run(&self, fence: Fence, run: RunId, end: RunEnd<'_>) -> Result<(), Error> {
        self.state().end_run(fence, run, end)
    }

    async fn runs(&self, thread: ThreadId) -> Result<Vec<RunRow>, Error> {
        Ok(self.state().get(thread)?.runs.clone())
    }
}

#[async_trait]
impl Steps for MemoryStore {
    async fn commit(&self, commit: &Commit) -> Result<(), Error> {
        self.state().commit(commit)
    }

    async fn save_pending(
        &self,
        fence: Fence,
        row: &PendingRow,
        blobs: &[BlobRow],
    ) -> Result<(), Error> {
        self.state().save_pending(fence, row, blobs)
    }

    async fn load(&self, thread: ThreadId, at: Option<u64>) -> Result<Loaded, Error> {
        self.state().load(thread, at, None)
    }

    async fn load_since(
        &self,
        thread: ThreadId,
        since: u64,
        at: Option<u64>,
    ) -> Result<Loaded, Error> {
        self.state().load(thread, at, Some(since))
    }

    fn state_cache(&self) -> Option<&StateCache> {
        Some(&self.states)
    }

    async fn history(
        &self,
        thread: ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<StepRow>, Error> {
        self.state().history(thread, before, limit)
    }

    async fn put_snapshot(&self, thread: ThreadId, snapshot: &SnapshotRow) -> Result<(), Error> {
        self.state().put_snapshot(thread, snapshot)
    }

    async fn blob(&self, thread: ThreadId, hash: &[u8; 32]) -> Result<Option<BlobRow>, Error> {
        self.state().blob(thread, hash)
    }
}

#[async_trait]
impl Effects for MemoryStore {
    async fn record_effects(&self, fence: Fence, effects: &[EffectRow]) -> Result<(), Error> {
        self.state().record(fence, effects)
    }

    async fn settle_effect(&self, fence: Fence, end: &EffectSettlement) -> Result<(), Error> {
        self.state().settle(fence, end)
    }

    async fn effects(&self, thread: ThreadId, step: Option<u64>) -> Result<Vec<EffectRow>, Error> {
        Ok(self.state().get(thread)?.effects_of(step))
    }

    async fn effects_from(&self, thread: ThreadId, step: u64) -> Result<Vec<EffectRow>, Error> {
        Ok(self.state().get(thread)?.effects_from(step))
    }
}

#[async_trait]
impl Questions for MemoryStore {
    async fn open_interrupts(&self, thread: ThreadId) -> Result<Vec<OpenInterrupt>, Error> {
        self.state().open_interrupts(thread)
    }

    async fn asked_below(&self, interrupt: InterruptId) -> Result<Option<ThreadId>, Error> {
        Ok(self.state().asked_below(interrupt))
    }

    async fn answer(&self, interrupt: InterruptId, answer: &Encoded) -> Result<(), Error> {
        self.state().answer(interrupt, answer)
    }
}

#[async_trait]
impl Events for MemoryStore {
    async fn append_events(&self, fence: Fence, batch: &EventRow) -> Result<(), Error> {
        self.state().append_events(fence, batch)
    }

    async fn event_position(&self, thread: ThreadId) -> Result<EventPosition, Error> {
        Ok(self.state().get(thread)?.position)
    }

    async fn events_after(
        &self,
        thread: ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<EventRow>, Error> {
        Ok(self.state().get(thread)?.events_after(after, limit))
    }

    async fn prune_events(&self, kept: Duration, most: u32) -> Result<u64, Error> {
        Ok(self.state().prune_events(kept, most))
    }
}

#[async_trait]
impl Transfer for MemoryStore {
    async fn export(&self, thread: ThreadId) -> Result<ThreadDump, Error> {
        self.state().export(thread)
    }

    async fn import(&self, dump: &ThreadDump) -> Result<(), Error> {
        self.state().import(dump)
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn outbox(&self) -> Option<&dyn Outbox> {
        Some(self)
    }

    fn describe(&self) -> String {
        "memory:".to_owned()
    }

    fn compress_above(&self) -> usize {
        usize::MAX
    }

    /// Nothing is read from a disk here: a snapshot saves no more than parsing, at about 0.2 GB/s.
    fn snapshot_above(&self) -> usize {
        16 * 1024 * 1024
    }

    async fn close(&self) {}
}
