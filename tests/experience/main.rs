//! What outlives a thread: skills that agents learn, and what users are remembered by; through the program itself.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy exempts only the test functions themselves, not what they share"
)]

#[path = "../it/cli/world.rs"]
#[expect(dead_code, reason = "shared with the other tests, which use more of it")]
mod world;

mod savings;
mod skills;
mod users;

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::{Value, json};
use world::World;

/// The files server, declared by the operator as nobody else's.
const SERVERS: &str = r#"
[mcp_servers.files]
command = "perihelion"
args = ["mcp", "files", "--root", "documents"]
default_tools_effect = "read_only"
open_world = false
"#;

const AGENT: &str = "mcp_agent_files";

/// A decision that hands the request to an agent; to `qa`, it ends the work.
fn decision(agent: &str) -> Reply {
    Reply::json(json!({
        "thought_process": "t", "plan": ["p"], "selected_agents": [agent], "tasks": [],
        "clarification": Value::Null, "confidence": Value::Null
    }))
}

fn verdict(status: &str) -> Reply {
    let feedback = if status == "REJECTED" { json!("no") } else { Value::Null };
    Reply::json(json!({ "status": status, "refined_output": Value::Null, "feedback": feedback }))
}

/// A supervisor that sends each request to the files agent once, a reflector that says so, and QA.
fn script(status: &str) -> Script {
    let done = Rule::new(decision("qa")).role(Role::Supervisor).contains("<result number=");
    Script::new()
        .rule(done)
        .rule(Rule::new(decision(AGENT)).role(Role::Supervisor))
        .rule(Rule::new(verdict(status)).role(Role::Reflector))
        .rule(Rule::new(Reply::text("The answer.")).role(Role::Qa))
}

async fn world(script: Script) -> World {
    let world = World::new(script).await;
    world.write("mcp-servers.toml", SERVERS);
    world.write("documents/b.txt", "The other answer is 43.\n");
    world
}
