//! Whose traces have not arrived yet.

use async_trait::async_trait;

use super::super::{Error, Outbox, TraceDebt};
use super::MemoryStore;
use crate::ids::ThreadId;

#[async_trait]
impl Outbox for MemoryStore {
    async fn owed(&self, limit: u32) -> Result<Vec<TraceDebt>, Error> {
        let state = self.state();
        let known = |debt: &&TraceDebt| state.threads.contains_key(&debt.thread);
        let mut debts: Vec<TraceDebt> = state.debts.values().filter(known).cloned().collect();
        debts.sort_by_key(|debt| (debt.since, debt.thread.0));
        debts.truncate(limit as usize);
        Ok(debts)
    }

    async fn count(&self) -> Result<u64, Error> {
        Ok(self.owed(u32::MAX).await?.len() as u64)
    }

    async fn owed_by(&self, thread: ThreadId) -> Result<Option<TraceDebt>, Error> {
        let state = self.state();
        Ok(state.debts.get(&thread).filter(|_| state.threads.contains_key(&thread)).cloned())
    }

    async fn paid(&self, thread: ThreadId, run: u32) -> Result<(), Error> {
        let mut state = self.state();
        if state.debts.get(&thread).is_some_and(|debt| debt.to_run <= run) {
            state.debts.remove(&thread);
        } else if let Some(debt) = state.debts.get_mut(&thread) {
            debt.from_run = debt.from_run.max(run + 1);
        }
        Ok(())
    }
}
