//! What the servers of a pool share.

use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::catalog::cache::Cache;
use crate::transport::oauth::Logins;
use crate::trust::Pins;

/// What the servers of a pool share.
pub(super) struct PoolContext {
    pub executable: Option<PathBuf>,
    pub patience: Duration,
    pub cache: Option<Cache>,
    /// Where definitions are pinned; without it every server is taken as it is.
    pub pins: Option<Arc<Pins>>,
    /// Where logins to servers are kept; without it servers that want one cannot be used.
    pub logins: Option<Logins>,
    /// Do not believe what is on disk; only write it.
    pub refresh: bool,
    /// Begin with what is pinned and not fresh any longer, and ask the server while everything else continues.
    pub refresh_beside: bool,
    /// Counts changes of what is told of the servers.
    pub changes: watch::Sender<u64>,
}

impl PoolContext {
    /// Tells anyone who listens that something about a server changed.
    pub fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}
