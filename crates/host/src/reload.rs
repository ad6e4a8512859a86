//! Reloads graphs when their files change; the previous child stays until the next child has loaded them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use perihelion_engine::clock;

use crate::Error;
use crate::host::Host;

/// The interval between two polls of the files.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// The number of polls between two passes over the threads, whose unused checkpoints are deleted a page at each poll.
const SWEEPS: u32 = 30;

/// Watches the files of a host until it is dropped.
pub async fn watch(host: Arc<Host>) {
    let mut known = stamps(host.files().await).await;
    let mut after = String::new();
    for poll in (0..SWEEPS).cycle() {
        clock::sleep(POLL_EVERY).await;
        if poll == SWEEPS - 1 || !after.is_empty() {
            after = host.sweep(&after).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "could not delete checkpoints of deleted threads; trying again later");
                String::new()
            });
        }
        let seen = stamps(host.files().await).await;
        if seen == known {
            continue;
        }
        match host.load().await {
            Ok(loaded) => {
                known = stamps(loaded.files.clone()).await;
                host.replace(loaded).await;
                tracing::info!("reloaded graphs because their files changed");
            }
            Err(error) => {
                known = seen;
                let traceback = match &error {
                    Error::Python { traceback, .. } => traceback.as_str(),
                    _ => "",
                };
                tracing::error!(%error, traceback, "cannot load changed graphs; the previous graphs stay");
            }
        }
    }
}

/// Returns the last change of each file.
async fn stamps(files: Vec<String>) -> Vec<(String, Option<SystemTime>)> {
    let mut stamps = Vec::with_capacity(files.len());
    for file in files {
        let changed = tokio::fs::metadata(&file).await.and_then(|data| data.modified()).ok();
        stamps.push((file, changed));
    }
    stamps
}
