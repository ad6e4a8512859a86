//! Clearing threads away: by age, by number, and the older steps of long ones.

use std::sync::Arc;

use super::{Threads, is_abandoned};
use crate::{Error, Served};
use perihelion_engine::checkpoint::{self, Store, ThreadFilter, ThreadInfo, ThreadStatus};
use perihelion_settings::config::Retention;

#[derive(Clone, Copy, Debug, Default)]
pub struct PruneOptions {
    pub dry_run: bool,
    /// Includes threads that wait for a person.
    pub waiting: bool,
}

/// Opens the graph of a thread, if the program has it.
pub type FindGraph<'a> = dyn Fn(&ThreadInfo) -> Result<Option<Arc<dyn Served>>, Error> + Sync + 'a;

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

#[derive(Clone, Copy, Debug)]
pub enum Pruned<'a> {
    Deleted(&'a ThreadInfo),
    /// With the first step that is left.
    Shortened(&'a ThreadInfo, u64),
}

impl Threads {
    /// Deletes and shortens threads by the retention settings; forks keep their shared steps.
    ///
    /// Each thread is one write: an interrupted prune leaves complete threads, and skips a thread that a process claims
    /// at that moment. Threads of graphs that `find_graph` does not find are deleted but not shortened. `done` is called after each
    /// thread, for progress. Ages are by the store's clock.
    ///
    /// # Errors
    /// Any error of the store, except for a single thread; earlier changes stay.
    pub async fn prune(
        &self,
        retention: &Retention,
        options: PruneOptions,
        find_graph: &FindGraph<'_>,
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
            // The steps of an archived thread are in its file.
            let is_long =
                info.archived.is_none() && retention.max_steps.is_some_and(|most| info.head > most);
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
                let Some(graph) = find_graph(&info)? else { continue };
                match shorten(store, graph.as_ref(), &info, most, options).await {
                    Ok(None) => {}
                    Ok(Some(first)) => {
                        done(Pruned::Shortened(&info, first));
                        report.shortened.push((info, first));
                    }
                    Err(Error::Store(error)) if error.is_of_thread() => {
                        report.failed.push((info, error));
                    }
                    Err(error) => return Err(error),
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

/// Deletes a thread unless another process claimed or deleted it since it was read.
async fn is_deleted(store: &dyn Store, info: &ThreadInfo) -> Result<bool, checkpoint::Error> {
    match store.delete_as_seen(info).await {
        Ok(()) => Ok(true),
        Err(checkpoint::Error::Moved { .. } | checkpoint::Error::UnknownThread(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Shortens a thread. A run that begins during this loses no step: it writes after the dropped ones.
async fn shorten(
    store: &dyn Store,
    graph: &dyn Served,
    info: &ThreadInfo,
    most: u64,
    options: PruneOptions,
) -> Result<Option<u64>, Error> {
    if !options.dry_run {
        return graph.compact(info.id, most).await;
    }
    // Those dropped before are not dropped again.
    let last = info.head.saturating_sub(most);
    let dropped = store.history(info.id, Some(last + 1), 1).await?;
    Ok(dropped.first().map(|_| last + 1))
}

/// Returns whether a person may still continue the thread's run.
fn is_needed(info: &ThreadInfo, options: PruneOptions) -> bool {
    match info.status {
        ThreadStatus::Idle | ThreadStatus::Failed | ThreadStatus::Parked => false,
        ThreadStatus::Interrupted => !options.waiting,
        _ => !is_abandoned(info),
    }
}
