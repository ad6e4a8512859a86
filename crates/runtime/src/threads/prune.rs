//! Clearing threads away: by age, by number, and the older steps of long ones.

use super::{Threads, is_abandoned};
use crate::Error;
use perihelion_engine::checkpoint::{self, Store, ThreadFilter, ThreadInfo, ThreadStatus};
use perihelion_engine::runner;
use perihelion_settings::config::Retention;
use perihelion_star::{GRAPH, GraphState};

/// How a prune goes about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PruneOptions {
    /// Nothing is changed; the report says what would be.
    pub dry_run: bool,
    /// Threads that wait for a person are taken as well.
    pub waiting: bool,
}

/// What a prune did, or would do.
#[derive(Debug, Default)]
pub struct PruneReport {
    pub deleted: Vec<ThreadInfo>,
    /// Threads that were shortened, each with the first step that it still has.
    pub shortened: Vec<(ThreadInfo, u64)>,
    /// Threads that were let be because they are under way or wait for a person.
    pub kept: Vec<ThreadInfo>,
    /// Threads that are damaged or cannot be decrypted, so that they could not be shortened.
    pub failed: Vec<(ThreadInfo, checkpoint::Error)>,
}

/// One thread that a prune is done with.
#[derive(Clone, Copy, Debug)]
pub enum Pruned<'a> {
    Deleted(&'a ThreadInfo),
    /// With the first step that is left.
    Shortened(&'a ThreadInfo, u64),
}

impl Threads {
    /// Deletes and shortens threads as far as the retention asks for it; forks keep what they share.
    ///
    /// Each thread is one write: a prune that is broken off leaves whole threads, and one that somebody takes up at
    /// that moment is let be. Threads of other graphs than the star are deleted but not shortened. `done` hears of each
    /// thread, for progress. Ages are by the store's clock.
    ///
    /// # Errors
    /// Whatever the store reports, except of a single thread; what was done until then is done.
    pub async fn prune(
        &self,
        retention: &Retention,
        options: PruneOptions,
        done: &mut (dyn FnMut(Pruned<'_>) + Send),
    ) -> Result<PruneReport, Error> {
        let store = self.0.as_ref();
        let mut report = PruneReport::default();
        let oldest = match retention.max_age {
            Some(age) => age.before(store.now().await?),
            None => None,
        };
        let threads = store.list(&ThreadFilter::default()).await?;
        for (newer, info) in (0_u64..).zip(threads) {
            let is_old = oldest.is_some_and(|oldest| info.updated_at < oldest);
            let is_beyond = retention.max_threads.is_some_and(|most| newer >= most);
            let is_long = retention.max_steps.is_some_and(|most| info.head > most);
            if !is_old && !is_beyond && !is_long {
                continue;
            }
            // It may have been taken up since it was listed, or be gone.
            let Some(info) = now(store, &info).await? else { continue };
            if is_needed(&info, options) {
                report.kept.push(info);
            } else if is_old || is_beyond {
                if options.dry_run || is_deleted(store, &info).await? {
                    done(Pruned::Deleted(&info));
                    report.deleted.push(info);
                }
            } else if let Some(most) = retention.max_steps {
                match shorten(store, &info, most, options).await {
                    Ok(None) => {}
                    Ok(Some(first)) => {
                        done(Pruned::Shortened(&info, first));
                        report.shortened.push((info, first));
                    }
                    Err(error) if error.is_of_thread() => report.failed.push((info, error)),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(report)
    }
}

async fn now(
    store: &dyn Store,
    listed: &ThreadInfo,
) -> Result<Option<ThreadInfo>, checkpoint::Error> {
    match store.info(listed.id).await {
        Ok(info) => Ok((info.updated_at == listed.updated_at).then_some(info)),
        Err(checkpoint::Error::UnknownThread(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Deletes a thread unless somebody took it up, or deleted it, since it was looked at.
async fn is_deleted(store: &dyn Store, info: &ThreadInfo) -> Result<bool, checkpoint::Error> {
    match store.delete_as_seen(info).await {
        Ok(()) => Ok(true),
        Err(checkpoint::Error::Moved { .. } | checkpoint::Error::UnknownThread(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Shortens a thread. A run that begins meanwhile loses nothing: it writes behind what is dropped.
async fn shorten(
    store: &dyn Store,
    info: &ThreadInfo,
    most: u64,
    options: PruneOptions,
) -> Result<Option<u64>, checkpoint::Error> {
    if info.graph != GRAPH {
        return Ok(None);
    }
    if !options.dry_run {
        return runner::compact::<GraphState>(store, info.id, most).await;
    }
    // Those dropped before are not dropped again.
    let last = info.head.saturating_sub(most);
    let dropped = store.history(info.id, Some(last + 1), 1).await?;
    Ok(dropped.first().map(|_| last + 1))
}

/// Returns whether somebody may still come back for the thread's run.
fn is_needed(info: &ThreadInfo, options: PruneOptions) -> bool {
    match info.status {
        ThreadStatus::Idle | ThreadStatus::Failed | ThreadStatus::Parked => false,
        ThreadStatus::Interrupted => !options.waiting,
        _ => !is_abandoned(info),
    }
}
