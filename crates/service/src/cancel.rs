//! Stops runs, whichever process drives them, and deletes those that have ended.

use uuid::Uuid;

use super::kept::{Cancel, Run, RunStatus};
use super::{Error, Service};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;

impl Service {
    /// Stops a run; returns how it stood: pending, running, or `None` where it had ended.
    ///
    /// One that another process drives is stopped by that process within a second.
    ///
    /// # Errors
    /// [`Error::OthersThread`].
    pub async fn cancel(&self, run: &Run, how: Cancel) -> Result<Option<RunStatus>, Error> {
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

    /// Deletes a run that has ended; what it did stays in its thread, unless that was made for it.
    ///
    /// # Errors
    /// [`Error::OthersThread`].
    pub async fn delete_run(&self, run: &Run) -> Result<(), Error> {
        self.user_on(ThreadId(run.thread), None).await?;
        if run.temporary && run.status.is_terminal() {
            return self.delete_thread(ThreadId(run.thread)).await;
        }
        self.kept().delete_run(run.thread, run.id).await?;
        Ok(())
    }

    /// Stops a run if this process drives it.
    pub(super) fn stop_driving(&self, run: Uuid) {
        if let Some(stop) = self.driven().get(&run) {
            stop.cancel();
        }
    }
}
