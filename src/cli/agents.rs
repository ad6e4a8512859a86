//! `perihelion agents`: what the MCP servers give, and what is wrong with those that give nothing.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Error, Exit, Signals, environment, output};
use crate::config::{Settings, strict::nearest};
use crate::mcp::ToolDefinition;
use crate::runtime::{AgentInfo, Review, ServerProblem, Survey, review, survey};
use crate::swarm::AGENT_PREFIX;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion agents
  perihelion agents show files
  perihelion agents approve files --dry-run
  perihelion agents list --json")]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the agents, and the servers that failed with the reasons.
    List,
    /// Show one agent: its server, its tools, and what was left out and why.
    Show {
        /// The agent's name, with or without its prefix
        name: String,
    },
    /// Show how a server differs from what was pinned of it, and accept it as it is now.
    ///
    /// A server whose name, version, instructions or tools changed is in quarantine until then.
    Approve {
        /// The agent's name, with or without its prefix
        name: String,
        /// Show the differences and accept nothing
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Serialize)]
struct AgentRow<'a> {
    name: &'a str,
    server: &'a str,
    description: &'a str,
    server_version: &'a str,
    protocol_version: &'a str,
    tools: Vec<Value>,
    rejected: Vec<Value>,
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit, Error> {
    let signals = Signals::listen()?;
    if let Some(Command::Approve { name, dry_run }) = &args.command {
        let short = name.trim().strip_prefix(AGENT_PREFIX).unwrap_or(name.trim());
        let found = tokio::select! {
            biased;
            () = signals.stopped() => return Ok(Exit::Aborted),
            found = review(&settings, &environment, short) => found?,
        };
        approve(found, *dry_run, args.json)?;
        return Ok(Exit::Done);
    }
    let found = tokio::select! {
        biased;
        // Dropping the scan ends the servers' processes.
        () = signals.stopped() => return Ok(Exit::Aborted),
        found = survey(&settings, &environment) => found?,
    };
    match args.command.unwrap_or(Command::List) {
        Command::List => list(&found, &settings, args.json)?,
        Command::Show { name } => show(&found, &name, args.json)?,
        // Done above, where nothing but the one server was started.
        Command::Approve { .. } => {}
    }
    Ok(Exit::Done)
}

fn approve(found: Review, dry_run: bool, json: bool) -> Result<(), Error> {
    let (server, nothing) = (found.server.clone(), found.nothing());
    let (headings, text, path) =
        (found.headings.clone(), found.text.clone(), found.path().display().to_string());
    let accepted = nothing.is_none() && !dry_run;
    if accepted {
        found.accept()?;
    }
    if json {
        return output::json(&json!({
            "server": server, "changes": headings, "text": text, "accepted": accepted,
        }));
    }
    if !text.is_empty() {
        output::text(&text)?;
    }
    output::note(&match nothing {
        Some(why) => format!("MCP server {server}: {why}"),
        None if dry_run => format!("nothing was accepted: perihelion agents approve {server}"),
        None => format!("MCP server {server} is pinned as shown, in {path}"),
    });
    Ok(())
}

fn list(found: &Survey, settings: &Settings, json: bool) -> Result<(), Error> {
    if json {
        let agents: Vec<_> = found.agents.iter().map(row).collect();
        let failed: Vec<_> = found.failed.iter().map(problem).collect();
        return output::json(&json!({ "agents": agents, "failed": failed }));
    }
    if !found.agents.is_empty() {
        let rows = found.agents.iter().map(|agent| {
            let tools: Vec<&str> = agent.server.tools.iter().map(|one| one.name.as_str()).collect();
            [agent.name.clone(), tools.join(", "), output::brief(&agent.server.description, 100)]
        });
        output::text(&output::table(["agent", "tools", "description"], rows.collect()))?;
    }
    for one in found.failed.iter().chain(&found.rejected) {
        output::warning(&format!("MCP server {}: {}", one.server, one.problem));
    }
    if found.agents.is_empty() && found.failed.is_empty() {
        let file = settings.servers.file.display();
        output::note(&format!("there are no agents: no MCP server is configured in {file}"));
    }
    Ok(())
}

fn row(agent: &AgentInfo) -> AgentRow<'_> {
    let server = &agent.server;
    let rejected = |(tool, reason): &(String, String)| json!({ "tool": tool, "reason": reason });
    AgentRow {
        name: &agent.name,
        server: &server.name,
        description: &server.description,
        server_version: &server.server_version,
        protocol_version: &server.protocol_version,
        tools: server.tools.iter().map(|tool| json!(tool)).collect(),
        rejected: server.rejected_tools.iter().map(rejected).collect(),
    }
}

fn problem(one: &ServerProblem) -> Value {
    json!({ "server": one.server, "reason": one.problem })
}

fn show(found: &Survey, name: &str, json: bool) -> Result<(), Error> {
    let wanted = name.trim().to_lowercase();
    let short = wanted.strip_prefix(AGENT_PREFIX).unwrap_or(&wanted);
    let is = |server: &str| server.to_lowercase() == short;
    let Some(agent) = found.agents.iter().find(|agent| is(&agent.server.name)) else {
        if let Some(failed) = found.failed.iter().find(|one| is(&one.server)) {
            let (server, problem) = (failed.server.clone(), failed.problem.clone());
            return Err(Error::NoAgent { server, problem });
        }
        let names = found.agents.iter().map(|agent| agent.server.name.as_str());
        let hint = nearest(short, names)
            .map_or_else(String::new, |best| format!(" (did you mean {best}?)"));
        return Err(Error::UnknownAgent { name: name.trim().to_owned(), hint });
    };
    if json {
        return output::json(&row(agent));
    }
    let server = &agent.server;
    let mut text = format!(
        "{}\n  server     {} ({}, MCP {})\n",
        agent.name, server.name, server.server_version, server.protocol_version
    );
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

/// Says what happens around a call of the tool.
fn nature(tool: &ToolDefinition) -> String {
    let mut words = Vec::new();
    if tool.needs_approval {
        words.push("a person approves each call");
    }
    if tool.open_world {
        words.push("anybody may have written what it returns");
    }
    if tool.repeatable {
        words.push("may be repeated after a crash");
    }
    if words.is_empty() { String::new() } else { format!(" ({})", words.join("; ")) }
}
