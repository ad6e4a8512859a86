//! Steps, what unfinished ones have already, and the texts that they name.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    super::{
        BlobRow, Commit, Error, Fence, Loaded, PendingRow, SnapshotRow, StateCache, StepRow, Steps,
        limits::moment,
    },
    MemoryStore,
    state::State,
};
use crate::clock;
use crate::ids::ThreadId;

#[async_trait]
impl Steps for MemoryStore {
    async fn commit(&self, commit: &Commit) -> Result<(), Error> {
        let state = &mut *self.state();
        let seq = commit.step.seq;
        let kept = state.fenced(Fence::new(commit.thread, commit.fence))?;
        if seq != kept.info.head + 1 {
            return Err(Error::Conflict { thread: commit.thread, seq, head: kept.info.head });
        }
        let now = moment(clock::now());
        kept.steps.push(Arc::new(StepRow { at: now, ..commit.step.clone() }));
        kept.info.head = seq;
        kept.info.status = commit.status;
        kept.info.updated_at = now;
        if commit.clears_pending {
            kept.pending = kept.pending.split_off(&(seq + 1, 0));
        }
        state.keep_blobs(&commit.blobs);
        Ok(())
    }

    async fn save_pending(
        &self,
        fence: Fence,
        row: &PendingRow,
        blobs: &[BlobRow],
    ) -> Result<(), Error> {
        let state = &mut *self.state();
        let kept = state.fenced(fence)?;
        if row.step != kept.info.head + 1 {
            return Err(Error::Conflict {
                thread: fence.thread,
                seq: row.step,
                head: kept.info.head,
            });
        }
        kept.pending.entry((row.step, row.task)).or_insert_with(|| row.clone());
        state.keep_blobs(blobs);
        Ok(())
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
        let state = self.state();
        let head = state.get(thread)?.info.head;
        let upto = before.map_or(head, |before| before.saturating_sub(1).min(head));
        let mut steps = state.steps(thread, upto.saturating_sub(u64::from(limit)), upto);
        steps.reverse();
        Ok(steps)
    }

    async fn put_snapshot(&self, thread: ThreadId, snapshot: &SnapshotRow) -> Result<(), Error> {
        let state = &mut *self.state();
        let kept = state.get_mut(thread)?;
        if snapshot.seq > kept.info.head {
            let head = kept.info.head;
            return Err(Error::UnknownStep { thread, seq: snapshot.seq, head });
        }
        if snapshot.seq >= kept.base {
            kept.snapshots.entry(snapshot.seq).or_insert_with(|| Arc::new(snapshot.clone()));
        }
        Ok(())
    }

    async fn blob(&self, thread: ThreadId, hash: &[u8; 32]) -> Result<Option<BlobRow>, Error> {
        self.state().blob(thread, hash)
    }
}

impl State {
    /// Keeps texts; of one that is there already the earlier step counts.
    pub(super) fn keep_blobs(&mut self, rows: &[BlobRow]) {
        for row in rows {
            let place = (row.owner, row.hash);
            let kept = self.blobs.entry(place).or_insert_with(|| Arc::new(row.clone()));
            if row.step < kept.step {
                Arc::make_mut(kept).step = row.step;
            }
        }
    }
}
