//! Recorded threads run again, offline.

use std::sync::Arc;

use super::{Error, Traces};
use crate::star_options::star_options;
use perihelion_engine::checkpoint;
use perihelion_engine::ids::ThreadId;
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
        let mut wanted = None;
        if let Some(number) = run {
            let runs = self.store.runs(thread).await?;
            let found = runs.iter().find(|one| one.number == number);
            let unknown = checkpoint::Error::UnknownRun { thread, number, newest: runs.len() };
            wanted = Some(found.ok_or(unknown)?.id);
        }
        let options = star_options(self.settings, &kinds, self.store)?;
        let star = Star::offline(kinds, options)?;
        let runner = Runner::new(Arc::clone(&star.graph), Arc::clone(self.store));
        Ok(runner.replay(thread, wanted).await?)
    }
}
