//! The agents that there are, and the servers they are made of.

use parking_lot::RwLockReadGuard;
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::plugins::{Plugins, pool_options, read, read_checked};
use super::survey::{AgentInfo, ServerProblem, Survey, sort_out};
use super::{Error, Runtime};
use perihelion_mcp::{
    self as mcp, CallContext, CallRound, DiscoveryProgress, Pool, PoolOptions, Reloaded, Reply,
    ServerState, ServersFile, ToolHost as _,
};
use perihelion_settings::config::Settings;
use perihelion_star::Kinds;

#[derive(Clone, Copy)]
pub struct Agents<'a>(&'a Plugins);

impl Runtime {
    pub fn agents(&self) -> Agents<'_> {
        Agents(&self.plugins)
    }
}

impl<'a> Agents<'a> {
    pub fn list(self) -> Vec<AgentInfo> {
        self.0.agents()
    }

    pub fn find(self, name: &str) -> Option<AgentInfo> {
        self.list().into_iter().find(|agent| agent.name == name || agent.server.name == name)
    }

    /// Returns the status of each server, in the file's order.
    pub fn states(self) -> Vec<ServerState> {
        self.0.pool.states()
    }

    pub fn problems(self) -> RwLockReadGuard<'a, Vec<ServerProblem>> {
        self.0.problems()
    }

    /// Calls a tool of a server once, outside any thread.
    ///
    /// # Errors
    /// As [`ToolHost::exchange`](mcp::ToolHost::exchange).
    pub async fn call(
        self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        context: CallContext,
    ) -> Result<Reply, mcp::Error> {
        self.0.pool.exchange(server, tool, CallRound::first(arguments), context).await
    }

    /// Applies another servers file: servers with unchanged tables keep running, removed ones finish their calls. Runs
    /// under way continue.
    pub async fn reload(self, file: ServersFile) -> Reloaded {
        self.0.take_over(file, false).await
    }
}

impl Agents<'_> {
    /// Asks configured servers for their tools and closes them again: all of them if `refresh`, otherwise those with
    /// unknown tools; `looks` receives the progress.
    ///
    /// A required server that fails is listed like any other: anyone who looks wants to see all of them.
    pub async fn survey(
        settings: &Settings,
        env: &dyn Fn(&str) -> Option<String>,
        kinds: &Kinds,
        refresh: bool,
        looks: &watch::Sender<DiscoveryProgress>,
    ) -> Result<Survey, Error> {
        let file = read_checked(&settings.servers.file, env, kinds)?;
        let warnings = file.warnings.clone();
        let usual = pool_options(settings, refresh)?;
        let pool = Pool::new(file, PoolOptions { looks: looks.clone(), ..usual });
        let survey = sort_out(pool.scan().await, kinds);
        let states = pool.states();
        pool.close().await;
        Ok(Survey { warnings, states, ..survey })
    }

    /// Returns the names of the enabled servers of the servers file, each with an agent; starts no server.
    pub fn names(settings: &Settings, env: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        let file = read(&settings.servers.file, env).unwrap_or_default();
        file.servers.into_iter().filter(|server| server.enabled).map(|server| server.name).collect()
    }
}
