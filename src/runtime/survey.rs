//! A look at the configured servers, without a store and without a model.

use super::Error;
use super::assemble::{AgentInfo, ServerProblem, pool_options, scan_pool, servers_file};
use crate::config::Settings;
use crate::mcp::{Pool, ToolHost as _};

/// What scanning the servers file gave.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    pub agents: Vec<AgentInfo>,
    /// Servers that could not be scanned.
    pub failed: Vec<ServerProblem>,
    /// Tools that were left out of servers that could.
    pub rejected: Vec<ServerProblem>,
}

/// Starts every configured server, asks for its tools, and closes it again.
///
/// A required server that fails is listed like any other: whoever looks wants to see all of them.
///
/// # Errors
/// [`Error`] when the servers file cannot be used.
pub async fn survey(
    settings: &Settings,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Survey, Error> {
    let file = servers_file(&settings.servers.file, env)?;
    let pool = Pool::new(file, pool_options(settings)?);
    let survey = scan_pool(&pool).await;
    pool.close().await;
    Ok(survey)
}
