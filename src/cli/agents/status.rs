//! `perihelion agents list`: all agents with their servers, here and in the running processes of this machine.

use serde_json::{Value, json};

use super::output;
use super::show::row;
use crate::cli::Error;
use crate::cli::init::no_agents;
use perihelion_mcp::agent_name;
use perihelion_runtime::{AgentInfo, Process, ServerProblem, ServerState, Survey, processes};
use perihelion_settings::config::Settings;

pub(super) fn list(found: &Survey, settings: &Settings, json: bool) -> Result<(), Error> {
    let running = using(settings);
    let status = |server: &str| found.states.iter().find(|state| state.server == server);
    if json {
        let agents: Vec<_> =
            found.agents.iter().map(|agent| row(agent, status(&agent.server.name))).collect();
        let failed: Vec<_> = found.failed.iter().map(problem).collect();
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

/// Finds the running processes that use the same servers file.
pub(super) fn using(settings: &Settings) -> Vec<Process> {
    let file = &settings.servers.file;
    let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
    processes().into_iter().filter(|process| process.servers_file == file).collect()
}

/// Describes the servers of a running process, one line each.
fn process_line(process: &Process) -> String {
    let line = |state: &ServerState| {
        let problem = state.problem.as_deref().map(|why| format!(": {}", output::one_line(why)));
        let phase = state.phase.as_str();
        format!("\n  {}: {phase}{}", state.server, problem.unwrap_or_default())
    };
    let lines: String = process.states.iter().map(line).collect();
    format!("{} {}{lines}", process.role, process.pid)
}

fn process(process: &Process) -> Value {
    json!({ "pid": process.pid, "role": process.role, "servers": process.states })
}

fn problem(one: &ServerProblem) -> Value {
    json!({ "server": one.server, "reason": one.problem })
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
