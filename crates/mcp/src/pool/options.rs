//! What all servers of a pool share: its options, its cache, and its signal of changes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::catalog::cache::Cache;
use crate::transport::oauth::Logins;
use crate::trust::Pins;

/// How the pool handles processes, and its initial knowledge of them.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// How long a process has to end after its stdin was closed, and once more after SIGTERM.
    pub patience: Duration,
    /// The program for `command = "perihelion"`; this executable by default.
    pub executable: Option<PathBuf>,
    /// Directory for the tool definitions of servers; with it, a server is started at its first call. Unset by default:
    /// a scan then starts every server.
    pub cache: Option<PathBuf>,
    /// Start every server anyway; stored definitions are written, not read.
    pub refresh: bool,
    /// Start with the stored tools of a pinned server even if they are no longer fresh, and ask the server in the
    /// background.
    pub refresh_beside: bool,
    /// The pins; without them every server is accepted unchanged.
    pub pins: Option<Arc<Pins>>,
    /// The logins to servers; without them (the default), a server that needs one cannot be used.
    pub logins: Option<Logins>,
    pub looks: watch::Sender<DiscoveryProgress>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            patience: Duration::from_millis(1500),
            executable: std::env::current_exe().ok(),
            cache: None,
            refresh: false,
            refresh_beside: false,
            pins: None,
            logins: None,
            looks: watch::Sender::default(),
        }
    }
}

/// How many of the servers that are looked at are known by now, or have failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiscoveryProgress {
    pub done: usize,
    pub all: usize,
}

pub(super) struct PoolContext {
    pub options: PoolOptions,
    pub cache: Option<Cache>,
    pub changes: watch::Sender<u64>,
}

impl PoolContext {
    pub fn new(options: PoolOptions) -> Self {
        let cache = |directory| Cache::new(directory, options.executable.clone());
        let cache = options.cache.clone().map(cache);
        Self { options, cache, changes: watch::Sender::default() }
    }

    pub fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}
