//! Servers that are not there yet: asked again with growing pauses, and awaited by runs that need them.
//!
//! Invariant: a process that lives on never gives a server up, and no run waits longer than the settings say.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{Life, Plugins, problems};
use crate::survey::sort_out;
use crate::threads::next_nodes;
use crate::{Error, Runtime};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_mcp::{self as mcp, Absent};

/// The first pause before absent servers are asked again, and how often it is looked whether there are any.
const FIRST: Duration = Duration::from_secs(1);

/// The longest pause between two attempts.
const LONGEST: Duration = Duration::from_secs(30);

impl Plugins {
    /// Asks the absent servers again that are named.
    pub(super) async fn retry(&self, names: &[String]) {
        let _turn = self.turn.lock().await;
        let found = sort_out(self.pool.retry(names).await, &self.kinds);
        let warnings = self.warnings.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut known = self.problems.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|one| !names.contains(&one.server));
        let warnings: Vec<_> =
            warnings.into_iter().filter(|one| names.contains(&one.server)).collect();
        known.extend(problems(&warnings, found));
        drop(known);
        self.fill();
    }

    /// Returns the absent servers that a thread whose next nodes are these cannot do without: required ones, those of its
    /// nodes, and all where there is no agent.
    fn needed(&self, next: &[String]) -> Vec<String> {
        let is_empty = self.pool.known().is_empty();
        let is_needed = |one: &Absent| {
            is_empty || one.is_required || next.contains(&mcp::agent_name(&one.server))
        };
        self.pool.absent().into_iter().filter(is_needed).map(|one| one.server).collect()
    }
}

/// Asks absent servers again for as long as the process lives; holds nothing that would keep processes alive.
pub(super) fn keep(plugins: &Arc<Plugins>) -> AbortOnDropHandle<()> {
    let plugins = Arc::downgrade(plugins);
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut pause = FIRST;
        let mut before = Vec::new();
        loop {
            clock::sleep(pause).await;
            let Some(plugins) = plugins.upgrade() else { return };
            let absent: Vec<String> =
                plugins.pool.absent().into_iter().map(|one| one.server).collect();
            if absent.is_empty() || absent != before {
                pause = FIRST;
            }
            if !absent.is_empty() {
                tracing::debug!(servers = absent.join(", "), "asking absent MCP servers again");
                plugins.retry(&absent).await;
                pause = (pause * 2).min(LONGEST);
            }
            before = absent;
        }
    }))
}

/// Tells whether a process is ready, by the servers that are marked `required`.
#[derive(Clone)]
pub struct Readiness(Weak<Plugins>);

impl Readiness {
    /// Returns the required servers that are not there.
    pub fn missing(&self) -> Vec<String> {
        let absent = self.0.upgrade().map(|plugins| plugins.pool.absent()).unwrap_or_default();
        absent.into_iter().filter(|one| one.is_required).map(|one| one.server).collect()
    }
}

impl Runtime {
    /// Returns what tells whether the process is ready.
    pub fn readiness(&self) -> Readiness {
        Readiness(Arc::downgrade(self.plugins()))
    }

    /// Waits for the agents that a thread needs and that are not there yet, for as long as `servers.wait_sec` says.
    ///
    /// Only a process that asks absent servers again has something to wait for.
    ///
    /// # Errors
    /// Whatever the store reports.
    pub(crate) async fn await_agents(
        &self,
        thread: ThreadId,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let plugins = self.plugins();
        if plugins.life != Life::Long || plugins.pool.absent().is_empty() {
            return Ok(());
        }
        let store = self.store().as_ref();
        let next = match store.info(thread).await {
            Ok(info) => next_nodes(store, thread, info.head).await?,
            Err(_) => Vec::new(),
        };
        let mut changes = plugins.pool.changes();
        let waiting = async {
            let mut has_told = false;
            loop {
                let needed = plugins.needed(&next);
                if needed.is_empty() {
                    return;
                }
                if !std::mem::replace(&mut has_told, true) {
                    tracing::info!(%thread, servers = needed.join(", "), "a run waits for MCP servers");
                }
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = waiting => {}
            () = cancel.cancelled() => {}
            () = clock::sleep(Duration::from_secs_f64(self.settings().servers.wait_sec)) => {
                tracing::warn!(%thread, "MCP servers did not come in time; the run begins without them");
            }
        }
        Ok(())
    }
}
