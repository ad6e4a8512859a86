//! The agents that there are, and the servers they are made of: scanned, called, compared with their pins.

use parking_lot::RwLockReadGuard;
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::plugins::{Plugins, logins, pins, pool_options, read, read_checked};
use super::{Error, Runtime};
use perihelion_mcp::{
    self as mcp, CallContext, CallRound, DiscoveryProgress, Pins, Pool, PoolOptions, Reloaded,
    Reply, ServerInfo, ServerPin, ServerState, ServerStatus, ServersFile, ToolHost as _, Warning,
};
use perihelion_settings::config::{PinMode, Settings};
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
        let agent = |server: ServerInfo| AgentInfo {
            name: mcp::agent_name(&server.name),
            kind: self.0.kinds.bind(&server).kind.card().name.to_owned(),
            server,
        };
        self.0.pool.known().into_iter().map(agent).collect()
    }

    pub fn find(self, name: &str) -> Option<AgentInfo> {
        self.list().into_iter().find(|agent| agent.name == name || agent.server.name == name)
    }

    /// Returns the status of each server, in the file's order.
    pub fn states(self) -> Vec<ServerState> {
        self.0.pool.states()
    }

    pub fn problems(self) -> RwLockReadGuard<'a, Vec<ServerProblem>> {
        self.0.problems.read()
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

/// A server that could not be scanned, or tools of it that were left out.
#[derive(Clone, Debug)]
pub struct ServerProblem {
    pub server: String,
    pub problem: String,
}

#[derive(Clone, Debug)]
pub struct AgentInfo {
    pub name: String,
    pub kind: String,
    pub server: ServerInfo,
}

impl AgentInfo {
    /// Reports that the server's results count as open world only because they are undeclared, if that is so.
    pub fn undeclared(&self) -> Option<String> {
        let what = "counts as open world, because neither its table nor the server declares it; set open_world to true or false \
                    in its table";
        self.server.undeclared.then(|| what.to_owned())
    }
}

#[derive(Clone, Debug, Default)]
pub struct Survey {
    pub agents: Vec<AgentInfo>,
    pub failed: Vec<ServerProblem>,
    /// Tools that were left out of servers that could, and agents that work in another way than was wanted.
    pub rejected: Vec<ServerProblem>,
    /// Entries that the servers file should not have.
    pub warnings: Vec<Warning>,
    pub states: Vec<ServerState>,
}

pub(super) fn sort_out(statuses: Vec<ServerStatus>, kinds: &Kinds) -> Survey {
    let mut survey = Survey::default();
    for status in statuses {
        let server = match status.outcome {
            Ok(server) => server,
            Err(error) => {
                let problem = error.to_string();
                survey.failed.push(ServerProblem { server: status.name, problem });
                continue;
            }
        };
        for (tool, reason) in &server.rejected_tools {
            let problem = format!("tool {tool} is excluded: {reason}");
            survey.rejected.push(ServerProblem { server: server.name.clone(), problem });
        }
        let bound = kinds.bind(&server);
        if let Some(problem) = bound.notice {
            survey.rejected.push(ServerProblem { server: server.name.clone(), problem });
        }
        let name = mcp::agent_name(&server.name);
        let kind = bound.kind.card().name.to_owned();
        survey.agents.push(AgentInfo { name, kind, server });
    }
    survey
}

#[derive(Debug)]
pub struct Review {
    pub server: String,
    /// The differences, one per line.
    pub headings: Vec<String>,
    /// The differences line by line.
    pub text: String,
    pins: Pins,
    /// `None`: the server has no definitions to pin.
    seen: Option<ServerPin>,
}

impl Review {
    /// Returns why there is no change to approve, if so.
    pub fn nothing(&self) -> Option<&'static str> {
        match &self.seen {
            None => Some("it is a bundled server and needs no pin"),
            Some(_) if self.headings.is_empty() => Some("it matches its pin"),
            Some(_) => None,
        }
    }

    pub fn path(&self) -> &std::path::Path {
        self.pins.path()
    }

    /// Pins the definitions that were shown, even if the server has changed since.
    ///
    /// # Errors
    /// [`Error::Config`] when the lock file cannot be written.
    pub fn accept(self) -> Result<(), Error> {
        match self.seen {
            Some(seen) => Ok(self.pins.pin(&self.server, seen)?),
            None => Ok(()),
        }
    }
}

/// Starts one server, compares its definitions with its pin, and closes it again.
pub async fn review(
    settings: &Settings,
    env: &(dyn Fn(&str) -> Option<String> + Sync),
    server: &str,
) -> Result<Review, Error> {
    // Pins that are switched off can still be looked at and made; a damaged file is an error in any case.
    let pins = pins(settings, PinMode::Required)?;
    let mut file: ServersFile = read(&settings.servers.file, env)?;
    if let Some(one) = file.unusable.iter().find(|one| one.server == server) {
        let server = one.server.clone();
        let reason = one.reason.clone().into();
        return Err(Error::Server(mcp::Error::Start { server, reason }));
    }
    file.servers.retain(|one| one.name == server && one.enabled);
    let options = PoolOptions { logins: Some(logins()), ..PoolOptions::default() };
    let pool = Pool::new(file, options);
    let seen = pool.pin(server).await;
    pool.close().await;
    let seen = seen?;
    let changes = match &seen {
        Some(seen) => pins.changes(server, seen)?,
        None => mcp::Changes::default(),
    };
    let headings = changes.headings();
    let text = changes.text();
    Ok(Review { server: server.to_owned(), headings, text, pins, seen })
}
