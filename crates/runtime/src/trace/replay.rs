//! Recorded threads run again, offline.

use std::sync::Arc;

use super::{Error, Traces};
use crate::Served;
use crate::star_options::star_options;
use perihelion_engine::checkpoint;
use perihelion_engine::ids::{RunId, ThreadId};
use perihelion_engine::runner::{ReplayReport, Runner};
use perihelion_star::{Kinds, Star};

impl Traces<'_> {
    /// Replays a star's thread, or one run of it, with the prompts and limits of the settings.
    ///
    /// Inputs from models and servers come from the journal.
    ///
    /// # Errors
    /// [`checkpoint::Error::UnknownRun`], and as [`Runner::replay`].
    pub async fn replay(
        &self,
        thread: ThreadId,
        run: Option<u32>,
        kinds: Arc<Kinds>,
    ) -> Result<ReplayReport, Error> {
        let wanted = self.run_id(thread, run).await?;
        let options = star_options(self.settings, &kinds, self.store)?;
        let star = Star::offline(kinds, options)?;
        let runner = Runner::new(Arc::clone(&star.graph), Arc::clone(self.store));
        Ok(runner.replay(thread, wanted).await?)
    }

    /// Replays a thread of a graph of the program's own, or one run of it.
    ///
    /// # Errors
    /// As [`Traces::replay`].
    pub async fn replay_own(
        &self,
        graph: &dyn Served,
        thread: ThreadId,
        run: Option<u32>,
    ) -> Result<ReplayReport, Error> {
        graph.replay(thread, self.run_id(thread, run).await?).await
    }

    /// Finds a run by its number.
    async fn run_id(&self, thread: ThreadId, run: Option<u32>) -> Result<Option<RunId>, Error> {
        let Some(number) = run else { return Ok(None) };
        let runs = self.store.runs(thread).await?;
        let found = runs.iter().find(|one| one.number == number);
        let unknown = checkpoint::Error::UnknownRun { thread, number, newest: runs.len() };
        Ok(Some(found.ok_or(unknown)?.id))
    }
}
