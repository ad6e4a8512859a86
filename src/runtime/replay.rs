//! Recorded threads run again, offline.

use std::sync::Arc;

use super::Error;
use super::assemble::star_limits;
use crate::checkpoint::{self, Store};
use crate::config::Settings;
use crate::ids::ThreadId;
use crate::llm::Prompts;
use crate::runner::{ReplayReport, Runner};
use crate::swarm::Star;

/// Replays a star's thread, or one run of it, with the prompts and limits of the settings.
///
/// No model and no server is needed: what nodes saw of them is in the journal.
///
/// # Errors
/// [`checkpoint::Error::UnknownRun`], and as [`Runner::replay`].
pub async fn replay(
    settings: &Settings,
    store: &Arc<dyn Store>,
    thread: ThreadId,
    run: Option<u32>,
) -> Result<ReplayReport, Error> {
    let mut wanted = None;
    if let Some(number) = run {
        let runs = store.runs(thread).await?;
        let found = runs.iter().find(|one| one.number == number);
        let unknown = checkpoint::Error::UnknownRun { thread, number, newest: runs.len() };
        wanted = Some(found.ok_or(unknown)?.id);
    }
    let prompts = Arc::new(Prompts::new(settings.prompts.dir.as_deref())?);
    let star = Star::offline(prompts, settings.models.price_list(), star_limits(settings))?;
    let runner = Runner::new(Arc::clone(&star.graph), Arc::clone(store));
    Ok(runner.replay(thread, wanted).await?)
}
