//! Stops runs in any process, and deletes runs that have ended.

use super::kept::{Cancel, Run, RunStatus};
use super::{Result, Service};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;

impl Service {
    /// Stops a run; returns its previous status, pending or running, or `None` if it had ended.
    ///
    /// A run of another process is stopped by that process within a second.
    pub async fn cancel(&self, run: &Run, how: Cancel) -> Result<Option<RunStatus>> {
        self.user_on(ThreadId(run.thread), None).await?;
        let stood = self.kept().ask_to_cancel(run.id, how, clock::now()).await?;
        match stood {
            Some(RunStatus::Pending) => {
                self.parts.ended.call(run.id, ());
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
