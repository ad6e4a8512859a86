//! Hands runs to the workers, and continues with what was handed over.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::outcome::{Durability, Error, RunOptions, RunOutcome};
use super::run::Runner;
use super::snapshots::Snapshots;
use crate::checkpoint::{Error as StoreError, RunEnd, RunStatus, ThreadInfo, ThreadStatus};
use crate::graph::{Position, State};
use crate::ids::{RunId, ThreadId};

impl<S: State> Runner<S> {
    /// Gives a thread a new input and leaves the run to the workers: [`Runner::wake`] continues with it.
    ///
    /// The input is a durable step when this returns, and after an error it is not there. A crash, or a database that is
    /// away, before the call to the workers leaves the thread busy with a dead holder, which a worker's next look sets right.
    ///
    /// # Errors
    /// As [`Runner::start`].
    pub async fn submit(&self, thread: ThreadId, input: S::Update) -> Result<RunId, Error> {
        let claimed = self.claim_finished(thread, &CancellationToken::new()).await?;
        let restored = &claimed.restored;
        let mut writer = self.writer(&claimed, Durability::Sync);
        let size = restored.snapshot_size;
        let since = restored.since_snapshot;
        let mut snapshots = Snapshots::new(self.store().as_ref(), thread, size, since);
        let mut position = Position {
            state: Arc::clone(&restored.state),
            head: restored.seq,
            frontier: restored.frontier.clone(),
            done: Default::default(),
        };
        let taken =
            self.take_input(restored, &mut position, input, &mut writer, &mut snapshots).await;
        snapshots.finish::<S>(None).await;
        if let Err(error) = taken {
            let newest =
                self.store().history(thread, None, 1).await.ok().and_then(|mut it| it.pop());
            if newest.is_none_or(|newest| newest.run != claimed.run) {
                return Err(self.break_off(&claimed, error).await);
            }
        }
        // From here on the input is stored, whatever becomes of the rest: the submission is not refused any more.
        let end = RunEnd::new(RunStatus::Queued, ThreadStatus::Queued);
        if let Err(error) = self.release(&claimed, end).await {
            tracing::warn!(%thread, %error, "the workers could not be called; one of them finds the thread");
        }
        Ok(claimed.run)
    }

    /// Resumes a thread that was handed to the workers, or whose run lost its process.
    ///
    /// `None` when there is nothing to do for this caller: the thread is at rest, waits for a person, has a
    /// holder that may live, or was taken by somebody else at this moment. A wake-up call is a hint; what
    /// the store says decides.
    ///
    /// # Errors
    /// As [`Runner::resume`].
    pub async fn wake(
        &self,
        thread: ThreadId,
        options: RunOptions<S>,
    ) -> Result<Option<RunOutcome<S>>, Error> {
        if !may_continue(&self.store().info(thread).await?) {
            return Ok(None);
        }
        let read = self.read(thread).await?;
        if !may_continue(&read.info) {
            return Ok(None);
        }
        match self.claim_as_read(read, &options.cancel).await {
            Ok(claimed) => match self.refuse_unasked(&claimed).await {
                Ok(()) => self.drive(claimed, None, options).await.map(Some),
                Err(error @ Error::NeverAsked { .. }) => {
                    tracing::warn!("{error}");
                    Ok(None)
                }
                Err(error) => Err(error),
            },
            Err(Error::Store(StoreError::Busy { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns whether a thread waits for somebody to continue with it; of a lease, only the database can tell.
fn may_continue(info: &ThreadInfo) -> bool {
    matches!(info.status, ThreadStatus::Queued | ThreadStatus::Busy)
}
