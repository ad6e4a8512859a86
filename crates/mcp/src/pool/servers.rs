//! All configured servers together, each scanned, called and closed independently.

use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, future::join_all, stream};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::options::{DiscoveryProgress, PoolContext, PoolOptions};
use super::server::Server;
use crate::configuration::{ServersFile, Unusable};
use crate::transport::oauth::{LoggedOut, Login};
use crate::trust::ServerPin;
use crate::types::{
    CallContext, CallPolicy, CallRound, Error, Reply, Result, ServerInfo, ServerState,
    ServerStatus, ToolHost,
};
use perihelion_settings::metrics;

/// Servers asked at once; more would only slow each other down.
const SCANS: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    pub server: String,
    pub is_required: bool,
    /// Whether it did not start within the start-up timeout.
    pub is_slow: bool,
}

/// The sessions with all enabled servers of a servers file.
///
/// Servers are connected when they are first needed and again after they were lost or stopped. End it with
/// [`ToolHost::close`]; a pool that is only dropped kills its processes without a goodbye.
pub struct Pool {
    pub(super) servers: RwLock<Vec<Arc<Server>>>,
    pub(super) context: Arc<PoolContext>,
    /// Servers that left the file and finish their calls.
    pub(super) draining: Arc<Mutex<Vec<Arc<Server>>>>,
    pub(super) ended: CancellationToken,
    pub(super) unusable: RwLock<Vec<Unusable>>,
    _end: DropGuard,
}

impl Pool {
    /// Prepares the enabled servers of a file without starting them.
    pub fn new(file: ServersFile, options: PoolOptions) -> Self {
        let ended = CancellationToken::new();
        let pool = Self {
            servers: RwLock::default(),
            unusable: RwLock::new(file.unusable.clone()),
            context: Arc::new(PoolContext::new(options)),
            draining: Arc::default(),
            _end: ended.clone().drop_guard(),
            ended,
        };
        let servers = pool.prepare(file, &[]);
        *pool.servers.write() = servers;
        pool
    }

    pub fn names(&self) -> Vec<String> {
        self.servers.read().iter().map(|server| server.config.name.clone()).collect()
    }

    /// Returns what would be pinned of a server now; `None` for a bundled one, which is this program itself.
    ///
    /// # Errors
    /// As [`ToolHost::scan`] for that server.
    pub async fn pin(&self, server: &str) -> Result<Option<ServerPin>> {
        self.found(server)?.pin().await
    }

    /// Begins a person's login to a server; anyone who asks shows the address and waits for the end.
    ///
    /// # Errors
    /// [`Error::UnknownServer`]; [`Error::Login`] if it has no login, or the server cannot be reached.
    pub async fn log_in(&self, server: &str) -> Result<Login> {
        self.found(server)?.log_in().await
    }

    /// Deletes a login, and the server's known tools.
    ///
    /// # Errors
    /// [`Error::UnknownServer`]; [`Error::Login`] if it has no login, or its file cannot be changed.
    pub async fn log_out(&self, server: &str) -> Result<LoggedOut> {
        self.found(server)?.log_out().await
    }

    /// Returns whether the program should not start without this server (`required = true`).
    pub fn is_required(&self, server: &str) -> bool {
        let unusable = self.unusable.read();
        self.servers.read().iter().any(|known| known.config.name == server && known.config.required)
            || unusable.iter().any(|one| one.server == server && one.required)
    }

    /// Returns the enabled servers that are absent: those with unknown tools, and required ones that could not be
    /// reached at the last attempt.
    pub fn absent(&self) -> Vec<Absent> {
        let is_absent = |one: &Server| {
            one.known().is_none() || (one.config.required && one.stands() == Some(false))
        };
        let absent = |one: &Arc<Server>| Absent {
            server: one.config.name.clone(),
            is_required: one.config.required,
            is_slow: one.is_slow(),
        };
        let servers = self.servers.read();
        let unusable = self.unusable.read();
        let unusable = unusable.iter().map(|one| Absent {
            server: one.server.clone(),
            is_required: one.required,
            is_slow: false,
        });
        servers.iter().filter(|one| is_absent(one)).map(absent).chain(unusable).collect()
    }

    /// Asks the named servers again, with more time for those whose start-up timeout was too short.
    pub async fn retry(&self, names: &[String]) -> Vec<ServerStatus> {
        let named =
            self.servers.read().clone().into_iter().filter(|one| names.contains(&one.config.name));
        let scans = named.map(|server| async move {
            let outcome = server.scan().await;
            metrics::server_retried(&server.config.name, outcome.is_ok());
            ServerStatus { name: server.config.name.clone(), outcome }
        });
        stream::iter(scans).buffered(SCANS).collect().await
    }

    /// Returns for each server whether its connection is open, if an attempt was made.
    pub fn reachable(&self) -> Vec<(String, bool)> {
        let servers = self.servers.read();
        servers.iter().filter_map(|one| Some((one.config.name.clone(), one.stands()?))).collect()
    }

    /// Returns the known tools of the servers, without asking or starting any, in the file's order.
    pub fn known(&self) -> Vec<ServerInfo> {
        self.servers.read().iter().filter_map(|server| server.known()).collect()
    }

    pub fn states(&self) -> Vec<ServerState> {
        self.servers.read().iter().map(|server| server.state()).collect()
    }

    /// Returns what changes whenever the tools or the state of a server do.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.context.changes.subscribe()
    }

    /// Lists the tools of every server, connecting first where needed, whatever is known of them.
    pub async fn rescan(&self) -> Vec<ServerStatus> {
        self.ask(true).await
    }

    /// Asks only servers whose tools are unknown, here and on disk, or no longer fresh.
    pub async fn look(&self) -> Vec<ServerStatus> {
        self.ask(false).await
    }

    async fn ask(&self, again: bool) -> Vec<ServerStatus> {
        let servers = self.servers.read().clone();
        self.context.options.looks.send_replace(DiscoveryProgress { done: 0, all: servers.len() });
        let scans = servers.into_iter().map(|server| async move {
            let outcome = if again { server.scan().await } else { server.look().await };
            self.context.options.looks.send_modify(|looked| looked.done += 1);
            if let Err(error) = &outcome {
                // The caller has it as a value and decides how to show it.
                tracing::debug!(server = %server.config.name, %error, "MCP server left out");
            }
            ServerStatus { name: server.config.name.clone(), outcome }
        });
        let mut found: Vec<ServerStatus> = stream::iter(scans).buffered(SCANS).collect().await;
        let unusable = self.unusable.read();
        found.extend(unusable.iter().cloned().map(|Unusable { server, reason, .. }| {
            ServerStatus {
                name: server.clone(),
                outcome: Err(Error::Start { server, reason: reason.into() }),
            }
        }));
        found
    }

    pub(super) fn prepare(&self, file: ServersFile, running: &[Arc<Server>]) -> Vec<Arc<Server>> {
        let enabled = file.servers.into_iter().filter(|config| config.enabled);
        enabled
            .map(|config| match running.iter().find(|server| server.config == config) {
                Some(same) => same.clone(),
                None => {
                    let old = running.iter().find(|old| old.config.name == config.name);
                    let server = Server::new(config, self.context.clone());
                    if let Some(old) = old {
                        server.succeed(old);
                    }
                    server
                }
            })
            .collect()
    }

    fn find(&self, name: &str) -> Option<Arc<Server>> {
        self.servers.read().iter().find(|known| known.config.name == name).cloned()
    }

    /// Returns the server that left the file and works at a task, which its successor does not know.
    fn draining_with(&self, name: &str, task: &str) -> Option<Arc<Server>> {
        let draining = self.draining.lock();
        let has = |one: &&Arc<Server>| one.config.name == name && one.admission.has_task(task);
        draining.iter().find(has).cloned()
    }

    fn found(&self, name: &str) -> Result<Arc<Server>> {
        self.find(name).ok_or_else(|| Error::UnknownServer(name.to_owned()))
    }
}

#[async_trait]
impl ToolHost for Pool {
    /// Asks those servers whose tools are not known, here or on disk; without a cache it asks all of them.
    async fn scan(&self) -> Vec<ServerStatus> {
        self.ask(self.context.cache.is_none()).await
    }

    async fn exchange(
        &self,
        server: &str,
        tool: &str,
        round: CallRound,
        context: CallContext,
    ) -> Result<Reply> {
        let old = match &round {
            CallRound::Call { .. } => None,
            CallRound::Wait { task, .. } | CallRound::Tell { task, .. } => {
                self.draining_with(server, &task.id)
            }
        };
        let mut known = old.map_or_else(|| self.found(server), Ok)?;
        loop {
            let reply = known.call(tool, round.clone(), context.clone()).await;
            let left = matches!(&reply, Err(Error::NotSent { .. })) && known.closed.is_cancelled();
            if !left {
                return reply;
            }
            // It left the file before the call was sent: its successor takes it, if there is one.
            let next = self.found(server)?;
            if Arc::ptr_eq(&next, &known) {
                return reply;
            }
            known = next;
        }
    }

    fn failure(&self, server: &str) -> Option<String> {
        self.find(server)?.failure()
    }

    fn call_policy(&self, server: &str, tool: &str) -> Option<CallPolicy> {
        self.find(server)?.call_policy(tool)
    }

    fn at_once(&self, server: &str) -> usize {
        self.find(server).map_or(1, |known| known.config.calls_at_once())
    }

    async fn close(&self) {
        let draining = self.draining.lock().clone();
        let servers = self.servers.read().clone();
        join_all(servers.iter().chain(&draining).map(|server| server.close())).await;
    }
}
