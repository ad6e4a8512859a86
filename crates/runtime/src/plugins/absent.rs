//! Servers that are not there yet: asked again with growing pauses, and awaited by runs that need them.
//!
//! Invariant: a process that lives on never gives a server up, and no run waits longer than the settings say.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{Plugins, problems};
use crate::agents::sort_out;
use crate::threads::next_nodes;
use crate::{Error, Runtime};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_mcp::{self as mcp, Absent};

/// The first pause before an absent server is asked again, and how often it is looked whether there are any.
const FIRST: Duration = Duration::from_secs(1);

/// The longest pause between two attempts.
const LONGEST: Duration = Duration::from_secs(30);

impl Plugins {
    /// Asks an absent server again, without delaying other work.
    async fn retry(&self, server: &str) {
        let found = self.pool.retry(&[server.to_owned()]).await;
        let _turn = self.turn.lock().await;
        if !self.pool.names().iter().any(|name| name == server) {
            return;
        }
        let warnings = self.warnings.read().clone();
        let warnings: Vec<_> = warnings.into_iter().filter(|one| one.server == server).collect();
        let found = problems(&warnings, sort_out(found, &self.kinds));
        let mut known = self.problems.write();
        known.retain(|one| one.server != server);
        known.extend(found);
        drop(known);
        self.fill();
    }

    /// Returns the absent servers that a thread with these next nodes needs: required ones, those of its nodes, and all
    /// if there is no agent.
    fn needed(&self, next: &[String]) -> Vec<String> {
        let is_empty = self.pool.known().is_empty();
        let is_needed = |one: &Absent| {
            is_empty || one.is_required || next.contains(&mcp::agent_name(&one.server))
        };
        self.pool.absent().into_iter().filter(is_needed).map(|one| one.server).collect()
    }
}

/// When an absent server is asked again.
struct Attempt {
    pause: Duration,
    due: Instant,
    is_under_way: bool,
}

/// Asks absent servers again while the process lives, each at its own interval, so one that hangs does not delay the
/// rest.
pub(super) fn keep(plugins: &Arc<Plugins>) -> AbortOnDropHandle<()> {
    let plugins = Arc::downgrade(plugins);
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut attempts: BTreeMap<String, Attempt> = BTreeMap::new();
        let mut under_way: JoinSet<String> = JoinSet::new();
        loop {
            clock::sleep(FIRST).await;
            let now = clock::monotonic();
            while let Some(ended) = under_way.try_join_next() {
                let ended = ended.ok().and_then(|server| attempts.get_mut(&server));
                if let Some(attempt) = ended {
                    attempt.is_under_way = false;
                    attempt.pause = (attempt.pause * 2).min(LONGEST);
                    attempt.due = now + attempt.pause;
                }
            }
            let Some(plugins) = plugins.upgrade() else { return };
            let absent = plugins.pool.absent();
            attempts.retain(|server, attempt| {
                attempt.is_under_way || absent.iter().any(|one| one.server == *server)
            });
            for Absent { server, .. } in absent {
                let attempt = attempts.entry(server.clone()).or_insert(Attempt {
                    pause: FIRST,
                    due: now,
                    is_under_way: false,
                });
                if attempt.is_under_way || attempt.due > now {
                    continue;
                }
                attempt.is_under_way = true;
                tracing::debug!(%server, "asking an absent MCP server again");
                let plugins = Arc::clone(&plugins);
                under_way.spawn(async move {
                    plugins.retry(&server).await;
                    server
                });
            }
        }
    }))
}

/// Returns whether a process is ready, according to the `required` servers.
#[derive(Clone)]
pub struct Readiness(Weak<Plugins>);

impl Readiness {
    pub fn missing(&self) -> Vec<String> {
        let absent = self.0.upgrade().map(|plugins| plugins.pool.absent()).unwrap_or_default();
        absent.into_iter().filter(|one| one.is_required).map(|one| one.server).collect()
    }
}

impl Runtime {
    pub fn readiness(&self) -> Readiness {
        Readiness(Arc::downgrade(&self.plugins))
    }

    /// Waits for the missing agents of a thread, for at most `servers.wait_sec`.
    pub(crate) async fn await_agents(
        &self,
        thread: ThreadId,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let plugins = &self.plugins;
        if plugins.pool.absent().is_empty() {
            return Ok(());
        }
        let store = self.store().as_ref();
        let next = match store.info(thread).await {
            Ok(info) => next_nodes(store, thread, info.head).await?,
            Err(_) => Vec::new(),
        };
        let mut changes = plugins.pool.changes();
        let waiting = async {
            let mut has_logged = false;
            loop {
                let needed = plugins.needed(&next);
                if needed.is_empty() {
                    return;
                }
                if !std::mem::replace(&mut has_logged, true) {
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
