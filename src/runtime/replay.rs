//! Recorded threads run again, offline.

use std::sync::Arc;

use super::Error;
use super::star_options::star_options;
use crate::agents;
use crate::checkpoint::{self, Store};
use crate::config::Settings;
use crate::ids::ThreadId;
use crate::runner::{ReplayReport, Runner};
use crate::swarm::{Kinds, Star};

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
    replay_with(settings, store, thread, run, agents::kinds()).await
}

/// Replays a star's thread with kinds of agents of one's own.
///
/// # Errors
/// As [`replay`].
pub async fn replay_with(
    settings: &Settings,
    store: &Arc<dyn Store>,
    thread: ThreadId,
    run: Option<u32>,
    kinds: Kinds,
) -> Result<ReplayReport, Error> {
    let mut wanted = None;
    if let Some(number) = run {
        let runs = store.runs(thread).await?;
        let found = runs.iter().find(|one| one.number == number);
        let unknown = checkpoint::Error::UnknownRun { thread, number, newest: runs.len() };
        wanted = Some(found.ok_or(unknown)?.id);
    }
    let star = Star::offline(star_options(settings, Arc::new(kinds), store)?)?;
    let runner = Runner::new(Arc::clone(&star.graph), Arc::clone(store));
    Ok(runner.replay(thread, wanted).await?)
}
