//! Moving threads at rest to the archive.

use std::time::Duration;

use chrono::DateTime;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Threads;
use crate::Error;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::{checkpoint, clock};
use perihelion_settings::config::{Age, Settings};

/// Threads that are looked for at a time.
const PAGE: u32 = 100;

/// Batches of events that are deleted at a time.
const EVENTS: u32 = 1_000;

#[derive(Debug, Default)]
pub struct ArchiveReport {
    pub archived: u64,
    /// Threads that are damaged, so that they were left in the database.
    pub failed: Vec<(ThreadId, checkpoint::Error)>,
}

impl Threads {
    /// Archives the threads at rest that have not changed for a time, one after the other, and removes files that a crash left.
    ///
    /// Threads that wait for a person, share history with a fork, or have an undelivered trace stay in the database. So do
    /// threads with events that are kept longer. Ages are by the store's clock.
    ///
    /// # Errors
    /// Any error of the store, except for a single thread; what was archived stays so.
    pub async fn archive(
        &self,
        settings: &Settings,
        age: Age,
        stop: &CancellationToken,
    ) -> Result<ArchiveReport, Error> {
        let store = self.0.as_ref();
        let mut report = ArchiveReport::default();
        let kept = Duration::from_secs_f64(settings.events.keep_sec);
        loop {
            let began = clock::monotonic();
            if stop.is_cancelled() || store.prune_events(kept, EVENTS).await? < u64::from(EVENTS) {
                break;
            }
            // Half of the time is left to other writes.
            clock::sleep(clock::monotonic().duration_since(began)).await;
        }
        store.sweep_archive().await?;
        let Some(before) = age.before(store.now().await?) else { return Ok(report) };
        let mut place = Some((DateTime::UNIX_EPOCH, ThreadId(Uuid::nil())));
        while let Some(after) = place {
            let page = store.archivable(before, after, PAGE).await?;
            for (_, thread) in &page {
                if stop.is_cancelled() {
                    return Ok(report);
                }
                match store.archive(*thread, before).await {
                    Ok(is_archived) => report.archived += u64::from(is_archived),
                    Err(checkpoint::Error::UnknownThread(_)) => {}
                    Err(error) if error.is_of_thread() => report.failed.push((*thread, error)),
                    Err(error) => return Err(error.into()),
                }
            }
            place = page.last().copied();
        }
        Ok(report)
    }
}
