//! Threads in this process alone: for tests, demonstrations and graphs whose threads need not survive it.
//!
//! Enter at [`MemoryStore`]. Invariant: it refuses and orders exactly as the databases do; only durability is missing.
//! A commit copies the step's bytes once and never touches older steps. Deliberately absent: compression, because there
//! is no disk.

mod journal;
mod state;
mod steps;
mod threads;

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use self::state::{Kept, State};
use super::{
    Archiving, Error, Outbox, Result, StateCache, Store, ThreadDump, ThreadInfo, Transfer, chain,
    family,
};
use crate::ids::ThreadId;

/// A store that lives as long as the value; calls never wait.
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
}

#[async_trait]
impl Transfer for MemoryStore {
    async fn export(&self, thread: ThreadId) -> Result<ThreadDump> {
        self.state.lock().export(thread)
    }

    async fn import(&self, dump: &ThreadDump) -> Result<()> {
        let state = &mut *self.state.lock();
        family::check_import(dump)?;
        chain::verify(dump)?;
        if let Some(one) = dump.family().find(|one| state.threads.contains_key(&one.info.id)) {
            return Err(Error::ThreadExists(one.info.id));
        }
        for one in dump.family() {
            let (status, error) = one.info.imported();
            let info = ThreadInfo {
                status,
                error: error.map(str::to_owned),
                owner: None,
                lease_until: None,
                forked_from: None,
                ..one.info.clone()
            };
            let thread = info.id;
            let mut kept = Kept::new(info, one.base());
            kept.steps = one.steps.iter().cloned().map(Arc::new).collect();
            let snapshots = one.snapshot.iter().chain(&one.returned);
            kept.snapshots = snapshots.map(|it| (it.seq, Arc::new(it.clone()))).collect();
            kept.pending =
                one.pending.iter().map(|row| ((row.step, row.task), row.clone())).collect();
            kept.runs = one.runs.clone();
            kept.run_index = one.runs.iter().enumerate().map(|(at, run)| (run.id, at)).collect();
            state.threads.insert(thread, kept);
            for effect in &one.effects {
                state.keep_effect(thread, effect)?;
            }
        }
        state.keep_blobs(&dump.blobs);
        Ok(())
    }
}

/// What is in memory alone is not archived.
impl Archiving for MemoryStore {}

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

    /// There is no disk to read: a snapshot saves only parsing, at about 0.2 GB/s.
    fn snapshot_above(&self) -> usize {
        16 * 1024 * 1024
    }

    async fn close(&self) {}
}
