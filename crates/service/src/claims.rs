//! The runs of this process, each driven by one task; stops runs in any process.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::kept::{Begin, Cancel, Run, RunStatus};
use super::{Parts, Result, Service};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;

/// The right of one task to drive a run in this process.
///
/// A task has it before the run's row names this process, and until the row has its end. A row that names this process
/// without a claim has therefore lost its task, or a claiming statement took effect whose reply was lost.
pub(super) struct Claim {
    parts: Arc<Parts>,
    run: Uuid,
    pub stop: Stop,
}

/// Ends the drive of a run.
#[derive(Clone)]
pub(super) struct Stop {
    /// Cancelled when the process must end, or the run.
    pub drive: CancellationToken,
    /// Cancelled when the run must end: then no other process continues it.
    pub run: CancellationToken,
}

impl Stop {
    fn end_run(&self) {
        self.run.cancel();
        self.drive.cancel();
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.parts.driven.lock().remove(&self.run);
    }
}

impl Service {
    /// Claims a run; `None` if another task of this process has it.
    pub(super) fn claim(&self, run: Uuid) -> Option<Claim> {
        match self.parts.driven.lock().entry(run) {
            Entry::Occupied(_) => None,
            Entry::Vacant(free) => {
                let drive = self.parts.stop.child_token();
                let stop = free.insert(Stop { drive, run: CancellationToken::new() }).clone();
                Some(Claim { parts: Arc::clone(&self.parts), run, stop })
            }
        }
    }

    /// Drives a run that this process has begun, and then begins the next one of its thread.
    pub(super) fn launch(&self, claim: Claim, run: Run) {
        let service = self.driving_for(&run.tenant);
        if run.cancel.is_some() {
            claim.stop.end_run();
        }
        self.parts.tasks.spawn(async move {
            let after = service.drive(&run, &claim.stop).await;
            // First, so that one who waits from here on looks at the row.
            drop(claim);
            service.parts.ended.call(run.id, after.finished);
            if !after.is_announced {
                service.runtime().bus().call(ThreadId(run.thread)).await;
            }
            if service.parts.stop.is_cancelled() || !after.has_next {
                return;
            }
            if let Err(error) = service.begin_next(run.thread).await {
                tracing::warn!(%error, "could not begin the next run of a thread; trying again");
            }
        });
    }

    /// Begins the run that has waited longest for a thread, unless one is driven.
    pub(super) async fn begin_next(&self, thread: Uuid) -> Result<()> {
        let begin = Begin { owner: &self.parts.owner, now: clock::now() };
        let Some(next) = self.kept().next_run(thread, begin.now).await? else { return Ok(()) };
        let Some(claim) = self.claim(next.id) else { return Ok(()) };
        if let Some(run) = self.kept().begin_run(&next, begin).await? {
            self.launch(claim, run);
        }
        Ok(())
    }

    /// Returns whether a task of this process drives a run, and will call its followers.
    pub(super) fn is_driven(&self, run: Uuid) -> bool {
        self.parts.driven.lock().contains_key(&run)
    }

    /// Stops a run if this process drives it.
    pub(super) fn stop_driving(&self, run: Uuid) {
        if let Some(stop) = self.parts.driven.lock().get(&run) {
            stop.end_run();
        }
    }

    /// Stops a run; returns its previous status, pending or running, or `None` if it had ended.
    ///
    /// A run of another process is stopped by that process within a second.
    pub async fn cancel(&self, run: &Run, how: Cancel) -> Result<Option<RunStatus>> {
        self.user_on(ThreadId(run.thread), None).await?;
        let stood = self.kept().ask_to_cancel(run.thread, run.id, how, clock::now()).await?;
        match stood {
            Some(RunStatus::Pending) => {
                self.parts.ended.call(run.id, None);
                self.runtime().bus().call(ThreadId(run.thread)).await;
                // One that was made for the run goes with it.
                if how == Cancel::Rollback && !run.temporary {
                    self.kept().delete_run(run.thread, run.id).await?;
                }
            }
            Some(_) => self.stop_driving(run.id),
            None => {}
        }
        Ok(stood)
    }

    /// Deletes a run that has ended; its results stay in its thread, unless the thread was created for it.
    pub async fn delete_run(&self, run: &Run) -> Result<()> {
        self.user_on(ThreadId(run.thread), None).await?;
        if run.temporary && run.status.is_terminal() {
            return self.delete_thread(ThreadId(run.thread)).await;
        }
        self.kept().delete_run(run.thread, run.id).await?;
        Ok(())
    }
}
