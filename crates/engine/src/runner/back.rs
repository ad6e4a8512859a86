//! Takes a thread back to an earlier step, which is itself a step: nothing is lost.

use std::sync::Arc;

use super::edit::{StateView, names};
use super::outcome::{Durability, Error, RunOptions};
use super::run::Runner;
use super::snapshots::snapshot_of;
use super::writer::Step;
use crate::checkpoint::{
    Error as StoreError, RunEnd, RunStatus, StepKind, ThreadStatus, fork_to, restore,
};
use crate::graph::{EngineError, State};
use crate::ids::ThreadId;

impl<S: State> Runner<S> {
    /// Makes a thread stand as it did at an earlier step; a resume continues from there.
    ///
    /// The steps in between stay, and can be gone back to in the same way. At the head nothing is written.
    ///
    /// # Errors
    /// [`StoreError::UnknownStep`] for a step that is not there, and whatever else the store reports.
    pub async fn go_back(&self, thread: ThreadId, to: u64) -> Result<StateView<S>, Error> {
        let read = self.read(thread).await?;
        if to == read.info.head {
            let next = names(&read.frontier);
            return Ok(StateView { info: read.info, seq: to, state: read.state, next });
        }
        let store = Arc::clone(self.store());
        if to > read.info.head {
            let head = read.info.head;
            return Err(StoreError::UnknownStep { thread, seq: to, head }.into());
        }
        let target = restore::<S>(store.as_ref(), thread, Some(to)).await?;
        let claimed = self.claim(read, &RunOptions::<S>::default().cancel).await?;
        let seq = claimed.restored.seq + 1;
        let unstorable = |error: serde_json::Error| {
            Error::Update(EngineError::Encode {
                node: "__fork__".into(),
                reason: error.to_string(),
            })
        };
        let delta = serde_json::to_vec(&[fork_to::<S>(to)]).map_err(unstorable)?;
        let frontier = serde_json::to_vec(&target.frontier).map_err(unstorable)?;
        let kind = StepKind::Fork;
        let step = Step { seq, kind, delta, frontier, clears_pending: true, texts: Vec::new() };
        if let Err(error) = self.writer(&claimed, Durability::Sync).write(step).await {
            return Err(self.break_off(&claimed, error.into()).await);
        }
        // What is shortened later may be what it goes back to; without the snapshot it is read more slowly until then.
        let expected = target.snapshot_size + target.since_snapshot;
        let kept = match snapshot_of(&*target.state, seq, store.compress_above(), expected) {
            Ok((row, _)) => store.put_snapshot(thread, &row).await,
            Err(error) => Err(error),
        };
        if let Err(error) = kept {
            tracing::warn!(%thread, %error, "a snapshot could not be written");
        }
        let next = names(&target.frontier);
        let (status, error) = if next.is_empty() {
            (ThreadStatus::Idle, None)
        } else {
            (
                ThreadStatus::Failed,
                Some("the thread went back to an earlier step; resume it to continue from it"),
            )
        };
        self.release(&claimed, RunEnd { error, ..RunEnd::new(RunStatus::Done, status) }).await?;
        let info = self.store().info(thread).await?;
        Ok(StateView { info, seq, state: target.state, next })
    }
}
