//! What a look at servers found: agents, and what is wrong.

use perihelion_mcp::{self as mcp, ServerInfo, ServerState, ServerStatus, Warning};
use perihelion_star::Kinds;

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
        let what = "counts as open world, because neither its table nor the server declares it; set open_world to true or false \
                    in its table";
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
            let problem = format!("tool {tool} is excluded: {reason}");
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
