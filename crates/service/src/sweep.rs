//! Deletes threads that were created for one run each, in the background.

use std::sync::atomic::Ordering;

use chrono::TimeDelta;

use super::{Error, Result, Service};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;

/// How long a single-run thread stays after its run, because a client may still read the stream.
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

    async fn sweep_all(&self) -> Result<()> {
        let before = clock::now() - STAYS;
        let mut passed = 0;
        loop {
            let page = self.kept().threads_of_one_run(before, PAGE, passed).await?;
            for (thread, tenant) in &page {
                if self.parts.stop.is_cancelled() {
                    return Ok(());
                }
                if !self.drives(tenant) {
                    passed += 1;
                    continue;
                }
                // One that cannot be deleted holds up no other.
                if let Err(error) = self.driving_for(tenant).sweep_one(ThreadId(*thread)).await {
                    tracing::debug!(%error, %thread, "could not delete a temporary thread; trying again");
                    passed += 1;
                }
            }
            if page.len() < PAGE as usize {
                return Ok(());
            }
        }
    }

    pub(super) async fn sweep_one(&self, thread: ThreadId) -> Result<()> {
        match self.info(thread).await {
            Ok(info) => self.remove_thread(&info).await,
            Err(Error::UnknownThread(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
