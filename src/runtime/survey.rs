//! A look at the configured servers, without a store and without a model.

use tokio::sync::watch;

use super::Error;
use super::assemble::{AgentInfo, ServerProblem, sort_out};
use super::plugins::{pool_options, read};
use crate::config::Settings;
use crate::mcp::{Looked, Pool, PoolOptions, ServerState, ToolHost as _, Warning};

/// What scanning the servers file gave.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    pub agents: Vec<AgentInfo>,
    /// Servers that could not be scanned.
    pub failed: Vec<ServerProblem>,
    /// Tools that were left out of servers that could.
    pub rejected: Vec<ServerProblem>,
    /// What the servers file should not say.
    pub warnings: Vec<Warning>,
    /// How each server stood at the end of the look.
    pub states: Vec<ServerState>,
}

/// Asks configured servers for their tools and closes them again: all of them if `refresh`, else those
/// whose tools are not known from an earlier time; `looks` is told how far that has come.
///
/// A required server that fails is listed like any other: whoever looks wants to see all of them.
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
    let survey = sort_out(pool.scan().await);
    let states = pool.states();
    pool.close().await;
    Ok(Survey { warnings, states, ..survey })
}
