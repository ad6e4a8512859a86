//! All configured servers together, each scanned, called and closed without regard to the others.

use std::{
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use async_trait::async_trait;
use futures::{StreamExt, future::join_all, stream};
use serde_json::{Map, Value};

use super::{
    CallContext, Error, Pins, ServerPin, ServerStatus, ToolHost, ToolOutcome, server::Server,
    servers_file::ServersFile,
};

/// How the pool treats processes.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Servers started at once during a scan; more would only slow each other down.
    pub scan_parallelism: usize,
    /// How long a process may take to end by itself after its stdin closed, and once more after SIGTERM.
    pub patience: Duration,
    /// What `command = "perihelion"` starts; by default this executable.
    pub executable: Option<PathBuf>,
    /// Where definitions are pinned; without it every server is taken as it is.
    pub pins: Option<Arc<Pins>>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            scan_parallelism: 16,
            patience: Duration::from_millis(1500),
            executable: std::env::current_exe().ok(),
            pins: None,
        }
    }
}

/// The sessions with all enabled servers of a servers file.
///
/// Servers are connected when they are first needed and again after they were lost. End it with
/// [`ToolHost::close`]; a pool that is only dropped kills its processes without a goodbye.
pub struct Pool {
    servers: RwLock<Vec<Arc<Server>>>,
    options: PoolOptions,
}

impl Pool {
    /// Prepares the enabled servers of a file; nothing is started yet.
    pub fn new(file: ServersFile, options: PoolOptions) -> Self {
        let pool = Self { servers: RwLock::default(), options };
        let servers = pool.prepare(file, &[]);
        *pool.servers.write().unwrap_or_else(PoisonError::into_inner) = servers;
        pool
    }

    /// Takes over a changed file: servers whose tables are the same keep running, the others
    /// are closed when their calls in flight have ended, at the latest after 30 seconds.
    pub async fn reload(&self, file: ServersFile) {
        let before = self.servers();
        let after = self.prepare(file, &before);
        *self.servers.write().unwrap_or_else(PoisonError::into_inner) = after.clone();
        let gone = before.iter().filter(|old| !after.iter().any(|new| Arc::ptr_eq(old, new)));
        join_all(gone.map(|server| server.drain())).await;
    }

    /// Returns the names of the enabled servers, in the file's order.
    pub fn names(&self) -> Vec<String> {
        self.servers().iter().map(|server| server.config.name.clone()).collect()
    }

    /// Returns what would be pinned of a server now; `None` for a bundled one, which is this program itself.
    ///
    /// # Errors
    /// As [`ToolHost::scan`] for that server.
    pub async fn pin(&self, server: &str) -> Result<Option<ServerPin>, Error> {
        let known = self.servers().into_iter().find(|known| known.config.name == server);
        known.ok_or_else(|| Error::UnknownServer(server.to_owned()))?.pin().await
    }

    /// Tells whether the program should not start without this server (`required = true`).
    pub fn is_required(&self, server: &str) -> bool {
        self.servers().iter().any(|known| known.config.name == server && known.config.required)
    }

    fn prepare(&self, file: ServersFile, running: &[Arc<Server>]) -> Vec<Arc<Server>> {
        let enabled = file.servers.into_iter().filter(|config| config.enabled);
        enabled
            .map(|config| match running.iter().find(|server| server.config == config) {
                Some(same) => same.clone(),
                None => {
                    let executable = self.options.executable.clone();
                    let (patience, pins) = (self.options.patience, self.options.pins.clone());
                    Arc::new(Server::new(config, executable, patience, pins))
                }
            })
            .collect()
    }

    fn servers(&self) -> Vec<Arc<Server>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl ToolHost for Pool {
    async fn scan(&self) -> Vec<ServerStatus> {
        let scans = self.servers().into_iter().map(|server| async move {
            let outcome = server.scan().await;
            if let Err(error) = &outcome {
                // The caller has it as a value and decides how to show it.
                tracing::debug!(server = %server.config.name, %error, "MCP server left out");
            }
            ServerStatus { name: server.config.name.clone(), outcome }
        });
        stream::iter(scans).buffered(self.options.scan_parallelism.max(1)).collect().await
    }

    async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        context: CallContext,
    ) -> Result<ToolOutcome, Error> {
        let known = self.servers().into_iter().find(|known| known.config.name == server);
        let known = known.ok_or_else(|| Error::UnknownServer(server.to_owned()))?;
        known.call(tool, arguments, context).await
    }

    async fn close(&self) {
        join_all(self.servers().iter().map(|server| server.close())).await;
    }
}
