//! Gives up on a thread whose runs end their process again and again.

use super::claimed::ClaimedThread;
use super::outcome::Error;
use super::run::Runner;
use crate::checkpoint::{RunStatus, ThreadStatus};
use crate::graph::State;

impl<S: State> Runner<S> {
    /// Refuses to resume a thread when so many runs before this one died in a row and committed nothing.
    ///
    /// Whatever ended those processes (memory, a crash in a library) may well end this one too, and the next.
    ///
    /// # Errors
    /// [`Error::CrashLoop`].
    pub(super) async fn refuse_crash_loop(
        &self,
        claimed: &ClaimedThread<S>,
        most: u32,
    ) -> Result<(), Error> {
        // Without a node to run only the run's end is missing, which kills nobody.
        if claimed.was != ThreadStatus::Busy || claimed.restored.frontier.tasks.is_empty() {
            return Ok(());
        }
        let store = self.store();
        let thread = claimed.restored.info.id;
        let newest = store.history(thread, None, 1).await?;
        let newest = newest.first().map(|step| step.run);
        let runs = store.runs(thread).await?;
        let died = |run: &&crate::checkpoint::RunRow| {
            run.status == RunStatus::Running && newest != Some(run.id)
        };
        let before = runs.iter().rev().skip_while(|run| run.id == claimed.run);
        let crashes = u32::try_from(before.take_while(died).count()).unwrap_or(u32::MAX);
        if crashes >= most { Err(Error::CrashLoop { thread, crashes }) } else { Ok(()) }
    }
}
