//! A look at the configured servers, without a store and without a model.

use tokio::sync::watch;

use super::Error;
use super::plugins::{pool_options, read};
use crate::agents;
use crate::config::Settings;
use crate::mcp::{
    self, Looked, Pool, PoolOptions, ServerInfo, ServerState, ServerStatus, ToolHost as _, Warning,
};
use crate::swarm::Kinds;

/// A server that could not be scanned, or tools of it that were left out.
#[derive(Clone, Debug)]
pub struct ServerProblem {
    pub server: String,
    pub problem: String,
}

/// An agent and the server it is made of.
#[derive(Clone, Debug)]
pub struct AgentInfo {
    pub name: String,
    /// How it works.
    pub kind: String,
    pub server: ServerInfo,
}

impl AgentInfo {
    /// Says that the server's results count as written by strangers only because nobody declared them, if that is so.
    pub fn undeclared(&self) -> Option<String> {
        let what = "counts as reaching the open world, because neither its table nor the server itself says otherwise; \
                    set open_world = false (or true) in its table";
        self.server.undeclared.then(|| what.to_owned())
    }
}

/// What scanning the servers file gave.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    pub agents: Vec<AgentInfo>,
    /// Servers that could not be scanned.
    pub failed: Vec<ServerProblem>,
    /// Tools that were left out of servers that could, and agents that work in another way than was wanted.
    pub rejected: Vec<ServerProblem>,
    /// What the servers file should not say.
    pub warnings: Vec<Warning>,
    /// How each server stood at the end of the look.
    pub states: Vec<ServerState>,
}

/// Asks configured servers for their tools and closes them again: all of them if `refresh`, else those
/// whose tools are not known from an earlier time; `looks` is told how far that has come.
///
/// A required server that fails is listed like any other: anyone who looks wants to see all of them.
///
/// # Errors
/// [`Error`] when the servers file cannot be used.
pub async fn survey(
    settings: &Settings,
    env: &dyn Fn(&str) -> Option<String>,
    refresh: bool,
    looks: &watch::Sender<Looked>,
) -> Result<Survey, Error> {
    let file = read(&settings.servers.file, env)?;
    let warnings = file.warnings.clone();
    let pool =
        Pool::new(file, PoolOptions { looks: looks.clone(), ..pool_options(settings, refresh)? });
    let survey = sort_out(pool.scan().await, &agents::kinds());
    let states = pool.states();
    pool.close().await;
    Ok(Survey { warnings, states, ..survey })
}

/// Returns the names of the enabled servers of the servers file, each of which gives an agent; nothing is started.
pub fn server_names(settings: &Settings, env: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let file = read(&settings.servers.file, env).unwrap_or_default();
    file.servers.into_iter().filter(|server| server.enabled).map(|server| server.name).collect()
}

/// Sorts what a scan gave.
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
            let problem = format!("the tool {tool} was left out: {reason}");
            survey.rejected.push(ServerProblem { server: server.name.clone(), problem });
        }
        let bound = kinds.bind(&server);
        if let Some(problem) = bound.notice {
            survey.rejected.push(ServerProblem { server: server.name.clone(), problem });
        }
        let name = mcp::agent_name(&server.name);
        let kind = bound.kind.name().to_owned();
        survey.agents.push(AgentInfo { name, kind, server });
    }
    survey
}
