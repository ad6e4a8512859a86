//! Steps, what unfinished ones have already, and the texts that they name.

use async_trait::async_trait;

use super::{
    super::{
        BlobRow, Commit, Error, Fence, Loaded, PendingRow, SnapshotRow, StateCache, StepRow, Steps,
        chain::verified,
    },
    SealedStore, values,
};
use crate::ids::ThreadId;

#[async_trait]
impl Steps for SealedStore {
    async fn commit(&self, commit: &Commit) -> Result<(), Error> {
        let step = values::seal_step(&self.keys, commit.thread, &commit.step)?;
        let blobs = self.seal_blobs(&commit.blobs)?;
        let Commit { thread, fence, status, clears_pending, .. } = *commit;
        self.inner.commit(&Commit { thread, fence, step, status, clears_pending, blobs }).await
    }

    async fn save_pending(
        &self,
        fence: Fence,
        row: &PendingRow,
        blobs: &[BlobRow],
    ) -> Result<(), Error> {
        let row = values::seal_pending(&self.keys, fence.thread, row)?;
        self.inner.save_pending(fence, &row, &self.seal_blobs(blobs)?).await
    }

    async fn load(&self, thread: ThreadId, at: Option<u64>) -> Result<Loaded, Error> {
        self.open_loaded(self.inner.load(thread, at).await?).await
    }

    async fn load_since(
        &self,
        thread: ThreadId,
        since: u64,
        at: Option<u64>,
    ) -> Result<Loaded, Error> {
        self.open_loaded(self.inner.load_since(thread, since, at).await?).await
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
        let rows = self.inner.history(thread, before, limit.saturating_add(1)).await?;
        verified(thread, self.open_steps(thread, rows).await?, limit)
    }

    async fn put_snapshot(&self, thread: ThreadId, snapshot: &SnapshotRow) -> Result<(), Error> {
        let snapshot = values::seal_snapshot(&self.keys, thread, snapshot)?;
        self.inner.put_snapshot(thread, &snapshot).await
    }

    async fn blob(&self, thread: ThreadId, hash: &[u8; 32]) -> Result<Option<BlobRow>, Error> {
        match self.find_blob(thread, hash).await? {
            Some(row) => values::open_blob(&self.keys, thread, row).map(Some),
            None => Ok(None),
        }
    }
}
