//! Whose traces have not arrived yet.

use async_trait::async_trait;

use super::super::{Error, Outbox, PendingExport};
use super::MemoryStore;
use crate::ids::ThreadId;

#[async_trait]
impl Outbox for MemoryStore {
    async fn pending(&self, limit: u32) -> Result<Vec<PendingExport>, Error> {
        let state = self.state();
        let known = |export: &&PendingExport| state.threads.contains_key(&export.thread);
        let mut exports: Vec<PendingExport> =
            state.exports.values().filter(known).cloned().collect();
        exports.sort_by_key(|export| (export.since, export.thread.0));
        exports.truncate(limit as usize);
        Ok(exports)
    }

    async fn count(&self) -> Result<u64, Error> {
        Ok(self.pending(u32::MAX).await?.len() as u64)
    }

    async fn pending_of(&self, thread: ThreadId) -> Result<Option<PendingExport>, Error> {
        let state = self.state();
        Ok(state.exports.get(&thread).filter(|_| state.threads.contains_key(&thread)).cloned())
    }

    async fn paid(&self, thread: ThreadId, run: u32) -> Result<(), Error> {
        let mut state = self.state();
        if state.exports.get(&thread).is_some_and(|export| export.to_run <= run) {
            state.exports.remove(&thread);
        } else if let Some(export) = state.exports.get_mut(&thread) {
            export.from_run = export.from_run.max(run + 1);
        }
        Ok(())
    }
}
