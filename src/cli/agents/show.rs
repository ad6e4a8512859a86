//! `perihelion agents show`: one agent in detail.

use serde::Serialize;
use serde_json::{Value, json};

use super::output;
use crate::cli::Error;
use perihelion_mcp::ToolDefinition;
use perihelion_runtime::{AgentInfo, Phase, ServerState, Survey};
use perihelion_settings::config::strict::nearest;
use perihelion_star::AGENT_PREFIX;

pub(super) fn run(found: &Survey, name: &str, json: bool) -> Result<(), Error> {
    let wanted = name.trim();
    let lower = name.trim().to_lowercase();
    let exact = wanted.strip_prefix(AGENT_PREFIX).unwrap_or(wanted);
    let short = lower.strip_prefix(AGENT_PREFIX).unwrap_or(&lower);
    let servers = found.agents.iter().map(|agent| agent.server.name.as_str());
    let servers = servers.chain(found.failed.iter().map(|one| one.server.as_str()));
    let alike: Vec<&str> = servers.filter(|server| server.to_lowercase() == short).collect();
    let meant = alike.iter().find(|server| **server == exact).or_else(|| alike.first());
    if alike.len() > 1 && !alike.contains(&exact) {
        let hint = format!(" (did you mean {}?)", alike.join(" or "));
        return Err(Error::UnknownAgent { name: wanted.to_owned(), hint });
    }
    let is = |server: &str| meant.is_some_and(|meant| *meant == server);
    let Some(agent) = found.agents.iter().find(|agent| is(&agent.server.name)) else {
        if let Some(failed) = found.failed.iter().find(|one| is(&one.server)) {
            let server = failed.server.clone();
            let problem = failed.problem.clone();
            return Err(Error::NoAgent { server, problem });
        }
        let names = found.agents.iter().map(|agent| agent.server.name.as_str());
        let hint = nearest(short, names)
            .map_or_else(String::new, |best| format!(" (did you mean {best}?)"));
        return Err(Error::UnknownAgent { name: name.trim().to_owned(), hint });
    };
    let is_its = |state: &&ServerState| state.server == agent.server.name;
    let status = found.states.iter().find(is_its);
    if json {
        return output::json(&row(agent, status));
    }
    let server = &agent.server;
    let mut text = format!(
        "{}\n  kind       {}\n  server     {} ({}, MCP {})\n",
        agent.name, agent.kind, server.name, server.server_version, server.protocol_version
    );
    if let Some(status) = status {
        let transport = &status.transport;
        let phase = status.phase.as_str();
        text.push_str(&format!("  state      {phase}, over {transport}\n"));
        if let Some(problem) = &status.problem {
            text.push_str(&format!("  problem    {}\n", output::one_line(problem)));
        }
    }
    if let Some(what) = agent.undeclared() {
        text.push_str(&format!("  trust      {what}\n"));
    }
    if !server.description.is_empty() {
        text.push_str(&format!("  says       {}\n", output::one_line(&server.description)));
    }
    text.push_str("  tools\n");
    for tool in &server.tools {
        text.push_str(&format!("    {}{}\n", tool.name, nature(tool)));
        if !tool.description.is_empty() {
            text.push_str(&format!("      {}\n", output::brief(&tool.description, 200)));
        }
    }
    for (tool, reason) in &server.rejected_tools {
        text.push_str(&format!("  left out   {tool}: {}\n", output::one_line(reason)));
    }
    output::text(&text)
}

/// Describes the policy for calls of the tool.
fn nature(tool: &ToolDefinition) -> String {
    let mut words = Vec::new();
    if tool.needs_approval {
        words.push("each call needs approval");
    }
    if tool.repeatable {
        words.push("can be repeated after a crash");
    }
    if words.is_empty() { String::new() } else { format!(" ({})", words.join("; ")) }
}

#[derive(Serialize)]
pub(super) struct AgentRow<'a> {
    name: &'a str,
    kind: &'a str,
    server: &'a str,
    description: &'a str,
    server_version: &'a str,
    state: Option<Phase>,
    transport: Option<&'a str>,
    /// Why calls are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'a str>,
    protocol_version: &'a str,
    /// It counts as open world only because neither its table nor the server declares it.
    undeclared: bool,
    tools: Vec<Value>,
    rejected: Vec<Value>,
}

/// Returns what programs are shown of an agent.
pub(super) fn row<'a>(agent: &'a AgentInfo, status: Option<&'a ServerState>) -> AgentRow<'a> {
    let server = &agent.server;
    let rejected = |(tool, reason): &(String, String)| json!({ "tool": tool, "reason": reason });
    AgentRow {
        name: &agent.name,
        kind: &agent.kind,
        server: &server.name,
        description: &server.description,
        server_version: &server.server_version,
        state: status.map(|status| status.phase),
        transport: status.map(|status| status.transport.as_str()),
        problem: status.and_then(|status| status.problem.as_deref()),
        protocol_version: &server.protocol_version,
        undeclared: server.undeclared,
        tools: server.tools.iter().map(|tool| json!(tool)).collect(),
        rejected: server.rejected_tools.iter().map(rejected).collect(),
    }
}
