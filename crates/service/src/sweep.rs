//! Deletes threads that were created for one run each, in the background.

use std::sync::Arc;

use chrono::TimeDelta;

use super::{Result, Service};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;

/// How long a single-run thread stays after its run, because a client may still read the stream.
const STAYS: TimeDelta = TimeDelta::seconds(60);

/// Threads that are looked for at a time.
const PAGE: u32 = 256;

impl Service {
    /// Begins to delete the threads whose time has come, unless this process is at it.
    pub(super) fn sweep(&self) {
        let Ok(turn) = Arc::clone(&self.parts.sweeping).try_lock_owned() else { return };
        let service = self.clone();
        self.parts.tasks.spawn(async move {
            if let Err(error) = service.sweep_all().await {
                tracing::debug!(%error, "could not list temporary threads; trying again");
            }
            drop(turn);
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
                // A thread that cannot be deleted does not delay the others.
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
        match self.known(thread).await? {
            Some(info) => self.remove_thread(&info).await,
            None => Ok(()),
        }
    }
}
