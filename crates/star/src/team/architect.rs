//! The architect: a goal and a catalogue of servers become the design of a team.

use serde_json::{Value, json};

use super::TEAM_PREFIX;
use super::design::{MAX_DEPTH, Material, TeamDesign};
use perihelion_llm::{self as llm, ChatModel, ChatRequest, Prompts, Role};
use perihelion_mcp::ServerInfo;

/// Characters of a server's description, and of a tool's, that the architect is shown.
const SHOWN_CHARS: usize = 240;

/// Tools of one server that the architect is shown.
const SHOWN_TOOLS: usize = 40;

/// Agents that the architect is asked to stay within.
const MOST_AGENTS: usize = 8;

/// What the architect is given.
#[derive(Debug)]
pub struct Brief<'a> {
    pub goal: &'a str,
    pub servers: &'a [ServerInfo],
    /// The same servers by name, and the teams that there are.
    pub material: &'a Material,
    /// What the model's endpoint is told of as the thread.
    pub thread: String,
}

/// Designs a team; a design that is not acceptable is fed back with what is wrong, at most twice.
///
/// # Errors
/// [`llm::Error::Invalid`] when no design was acceptable; otherwise the model's own error.
pub async fn design(
    model: &dyn ChatModel,
    prompts: &Prompts,
    brief: Brief<'_>,
) -> Result<TeamDesign, llm::Error> {
    let catalogue: Vec<Value> = brief.servers.iter().map(entry).collect();
    let prompt = json!({
        "goal": brief.goal.trim(),
        "servers": catalogue,
        "teams": brief.material.teams.values().map(of_team).collect::<Vec<_>>(),
        "deepest": MAX_DEPTH,
        "most_agents": MOST_AGENTS,
    });
    let messages = prompts.messages("architect", prompt)?;
    let request = ChatRequest::new(Role::Architect, brief.thread, messages);
    let check = |design: TeamDesign| {
        let design = design.cleaned();
        let problems = design.problems(brief.material);
        if problems.is_empty() { Ok(design) } else { Err(problems) }
    };
    Ok(llm::ask_checked(model, request, "team_design", check).await?.value)
}

/// Returns what the architect sees of a team.
fn of_team(team: &TeamDesign) -> Value {
    let name = format!("{TEAM_PREFIX}{}", team.name);
    json!({ "name": name, "description": brief_of(&team.description) })
}

/// Returns what the architect sees of a server; of one that reaches the open world no words of its own.
fn entry(server: &ServerInfo) -> Value {
    let tools = server.tools.iter().filter(|_| !server.open_world).take(SHOWN_TOOLS);
    let tools = tools.map(|tool| {
        if server.undeclared {
            tool.name.clone()
        } else {
            format!("{}: {}", tool.name, brief_of(&tool.description))
        }
    });
    json!({
        "name": server.name,
        "description": brief_of(&server.description),
        "tools": tools.collect::<Vec<_>>(),
    })
}

/// Makes a text one line of bounded length.
fn brief_of(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
