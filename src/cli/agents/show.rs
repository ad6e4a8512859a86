//! `perihelion agents list` and `show`: agents with their servers, here and in the running processes of this machine.

use serde_json::{Value, json};

use super::output;
use crate::cli::Error;
use crate::cli::init::no_agents;
use perihelion_mcp::{ToolDefinition, agent_name};
use perihelion_runtime::{AgentInfo, Process, ServerProblem, ServerState, Survey, processes};
use perihelion_settings::config::Settings;
use perihelion_settings::config::strict::did_you_mean;
use perihelion_star::AGENT_PREFIX;

pub(super) fn show(found: &Survey, name: &str, json: bool) -> Result<(), Error> {
    let wanted = name.trim();
    let exact = short_name(name);
    let lower = wanted.to_lowercase();
    let short = short_name(&lower);
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
        let hint = did_you_mean(short, names);
        return Err(Error::UnknownAgent { name: wanted.to_owned(), hint });
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

fn row(agent: &AgentInfo, status: Option<&ServerState>) -> Value {
    let server = &agent.server;
    let rejected = |(tool, reason): &(String, String)| json!({ "tool": tool, "reason": reason });
    let problem = status.and_then(|status| status.problem.as_ref());
    let mut row = json!({
        "name": agent.name,
        "kind": agent.kind,
        "server": server.name,
        "description": server.description,
        "server_version": server.server_version,
        "state": status.map(|status| status.phase),
        "transport": status.map(|status| &status.transport),
        // Why calls are refused.
        "problem": problem,
        "protocol_version": server.protocol_version,
        // It counts as open world only because neither its table nor the server declares it.
        "undeclared": server.undeclared,
        "tools": server.tools,
        "rejected": server.rejected_tools.iter().map(rejected).collect::<Vec<_>>(),
    });
    if problem.is_none()
        && let Some(fields) = row.as_object_mut()
    {
        fields.shift_remove("problem");
    }
    row
}

pub(super) fn list(found: &Survey, settings: &Settings, json: bool) -> Result<(), Error> {
    let running = using(settings);
    let status = |server: &str| found.states.iter().find(|state| state.server == server);
    if json {
        let agents: Vec<_> =
            found.agents.iter().map(|agent| row(agent, status(&agent.server.name))).collect();
        let problem = |one: &ServerProblem| json!({ "server": one.server, "reason": one.problem });
        let failed: Vec<_> = found.failed.iter().map(problem).collect();
        let process =
            |it: &Process| json!({ "pid": it.pid, "role": it.role, "servers": it.states });
        let processes: Vec<_> = running.iter().map(process).collect();
        return output::json(
            &json!({ "agents": agents, "failed": failed, "processes": processes }),
        );
    }
    if !found.agents.is_empty() || !found.failed.is_empty() {
        let failed = found.failed.iter().map(|one| {
            let state = status(&one.server).map_or("failed", |state| state.phase.as_str());
            let problem = output::brief(&one.problem, 100);
            [agent_name(&one.server), state.to_owned(), "-".into(), "-".into(), problem]
        });
        let rows = found.agents.iter().map(|agent| {
            let server = &agent.server;
            let tools: Vec<&str> = server.tools.iter().map(|one| one.name.as_str()).collect();
            let state = status(&server.name);
            [
                agent.name.clone(),
                state.map(|state| state.phase.as_str().to_owned()).unwrap_or_default(),
                format!(
                    "{}, {}",
                    state.map(|state| state.transport.as_str()).unwrap_or_default(),
                    server.protocol_version
                ),
                format!("{}: {}", tools.len(), output::brief(&tools.join(", "), 100)),
                output::brief(&server.description, 100),
            ]
        });
        let head = ["agent", "state", "MCP", "tools", "description"];
        output::text(&output::table(head, rows.chain(failed).collect()))?;
    }
    for process in &running {
        output::text(&process_line(process))?;
    }
    for warning in &found.warnings {
        output::warning(&format!("MCP server {}: {}", warning.server, warning.text));
    }
    for agent in &found.agents {
        if let Some(problem) = status(&agent.server.name).and_then(|it| it.problem.as_deref()) {
            output::warning(&format!("MCP server {}: {problem}", agent.server.name));
        }
    }
    note_undeclared(&found.agents);
    for one in found.failed.iter().chain(&found.rejected) {
        output::warning(&format!("MCP server {}: {}", one.server, one.problem));
    }
    if found.agents.is_empty() && found.failed.is_empty() {
        output::note(&no_agents(settings));
    }
    Ok(())
}

/// Returns the name of an agent's server; an agent may be named without its prefix.
pub(super) fn short_name(agent: &str) -> &str {
    let name = agent.trim();
    name.strip_prefix(AGENT_PREFIX).unwrap_or(name)
}

/// Finds the running processes that use the same servers file.
pub(super) fn using(settings: &Settings) -> Vec<Process> {
    let file = &settings.servers.file;
    let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
    processes().into_iter().filter(|process| process.servers_file == file).collect()
}

fn process_line(process: &Process) -> String {
    let line = |state: &ServerState| {
        let problem = state.problem.as_deref().map(|why| format!(": {}", output::one_line(why)));
        let phase = state.phase.as_str();
        format!("\n  {}: {phase}{}", state.server, problem.unwrap_or_default())
    };
    let lines: String = process.states.iter().map(line).collect();
    format!("{} {}{lines}", process.role, process.pid)
}

/// Notes the servers that do not declare whether they are open world, in one line.
fn note_undeclared(agents: &[AgentInfo]) {
    let undeclared: Vec<_> = agents.iter().filter(|agent| agent.server.undeclared).collect();
    match undeclared.as_slice() {
        [] => {}
        [agent] => {
            let what = agent.undeclared().unwrap_or_default();
            output::note(&format!("MCP server {} {what}", agent.server.name));
        }
        many => {
            let names: Vec<_> = many.iter().map(|agent| agent.server.name.as_str()).collect();
            output::note(&format!(
                "{} MCP servers count as open world because neither their tables nor the servers declare it; set open_world to \
                 true or false in their tables: {}",
                many.len(),
                names.join(", ")
            ));
        }
    }
}
