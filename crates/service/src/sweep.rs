//! Deletes threads that were made for one run each, beside everything else that a process does.

use std::sync::atomic::Ordering;

use chrono::TimeDelta;

use super::{Error, Service};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;

/// How long a thread of one run stays after it: somebody may be reading the run's stream.
const STAYS: TimeDelta = TimeDelta::seconds(60);

/// Threads that are looked for at a time.
const PAGE: u32 = 256;

impl Service {
    /// Begins to delete the threads whose time has come, unless this process is at it.
    pub(super) fn sweep(&self) {
        if self.parts.is_sweeping.swap(true, Ordering::AcqRel) {
            return;
        }
        let service = self.clone();
        self.parts.tasks.spawn(async move {
            if let Err(error) = service.sweep_all().await {
                tracing::debug!(%error, "could not list temporary threads; trying again");
            }
            service.parts.is_sweeping.store(false, Ordering::Release);
        });
    }

    async fn sweep_all(&self) -> Result<(), Error> {
        let before = clock::now() - STAYS;
        loop {
            let page = self.kept().threads_of_one_run(before, PAGE).await?;
            let mut gone = 0;
            for (thread, tenant) in &page {
                if self.parts.stop.is_cancelled() {
                    return Ok(());
                }
                if !self.drives(tenant) {
                    continue;
                }
                // One that cannot be deleted holds up no other.
                match self.driving_for(tenant).sweep_one(ThreadId(*thread)).await {
                    Ok(()) => gone += 1,
                    Err(error) => {
                        tracing::debug!(%error, %thread, "could not delete a temporary thread; trying again");
                    }
                }
            }
            if gone == 0 || page.len() < PAGE as usize {
                return Ok(());
            }
        }
    }

    async fn sweep_one(&self, thread: ThreadId) -> Result<(), Error> {
        match self.info(thread).await {
            Ok(info) => self.remove_thread(&info).await,
            Err(Error::UnknownThread(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
