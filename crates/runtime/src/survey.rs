//! The result of a scan: agents, and problems.

use perihelion_mcp::{self as mcp, ServerInfo, ServerState, ServerStatus, Warning};
use perihelion_star::Kinds;

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

/// The result of a scan of the servers file.
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
