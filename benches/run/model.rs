//! The model of the measured runs: it answers at once, in a process of its own, and counts what it is sent.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use perihelion::llm::scripted::{RecordedRequest, Reply, Script, ScriptedModel};
use serde_json::{Value, json};

/// The argument that makes this program the model.
pub const PLAYS: &str = "--plays-the-model";

/// Calls, and bytes of messages and of tools, by role.
type Prompts = BTreeMap<String, [usize; 3]>;

pub struct Model {
    pub url: String,
    process: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Model {
    pub fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--bench", PLAYS]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut answers = BufReader::new(process.stdout.take().unwrap());
        let mut url = String::new();
        answers.read_line(&mut url).unwrap();
        let asks = process.stdin.take().unwrap();
        Self { url: url.trim().to_owned(), process, asks, answers }
    }

    /// Returns what each role was sent since the last look.
    pub fn prompts(&mut self) -> Prompts {
        writeln!(self.asks).unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Answers until it is ended; each line on its standard input asks for what was sent since.
pub async fn play() {
    let prompts = Arc::new(Mutex::new(Prompts::new()));
    let heard = prompts.clone();
    let script = Script::new().respond_with(move |request| {
        note(&mut heard.lock().unwrap(), request);
        Some(answer(request))
    });
    let model = ScriptedModel::start(script).await.unwrap();
    println!("{}", model.url());
    let asked = tokio::task::spawn_blocking(move || {
        for _ in std::io::stdin().lines() {
            let sent = std::mem::take(&mut *prompts.lock().unwrap());
            println!("{}", serde_json::to_string(&sent).unwrap());
        }
    });
    asked.await.unwrap();
}

/// What is answered without any agent, and what takes six tasks of which each needs the one before; anything else takes two agents.
pub const SHORT: &str = "Say hello.";
pub const SIX: &str = "What are the six numbers?";

fn answer(request: &RecordedRequest) -> Reply {
    let messages = request.body["messages"].to_string();
    let has_read = messages.contains("\"role\":\"tool\"");
    match (request.role.as_str(), request.nth) {
        ("supervisor", _) if messages.contains(SHORT) => select(&["qa"], &[]),
        ("supervisor", 1) if messages.contains(SIX) => {
            let tasks: Vec<Value> = (1..=6).map(task).collect();
            select(&["mcp_agent_atlas", "mcp_agent_ledger"], &tasks)
        }
        ("supervisor", _) if messages.contains(SIX) => select(&["qa"], &[]),
        ("supervisor", 1) => select(&["mcp_agent_atlas"], &[]),
        ("supervisor", 2) => select(&["mcp_agent_ledger"], &[]),
        ("supervisor", _) => select(&["qa"], &[]),
        ("agent", _) if !has_read => Reply::call("read", json!({ "path": "a.txt" })),
        ("agent", _) => Reply::text("a.txt says 42."),
        ("reflector", _) => {
            Reply::json(json!({ "status": "APPROVED", "refined_output": null, "feedback": null }))
        }
        _ if messages.contains(SHORT) => Reply::text("Hello."),
        _ => Reply::text("It is 42 [1]."),
    }
}

fn select(agents: &[&str], tasks: &[Value]) -> Reply {
    Reply::json(json!({
        "thought_process": "", "plan": ["look", "answer"], "selected_agents": agents,
        "tasks": tasks, "clarification": null,
    }))
}

fn task(number: usize) -> Value {
    let agent = if number % 2 == 1 { "mcp_agent_atlas" } else { "mcp_agent_ledger" };
    let before = if number == 1 { vec![] } else { vec![format!("t{}", number - 1)] };
    json!({
        "id": format!("t{number}"), "agent": agent, "task": format!("Find number {number}."),
        "depends_on": before,
    })
}

fn note(prompts: &mut Prompts, request: &RecordedRequest) {
    let size = |part: &Value| if part.is_null() { 0 } else { part.to_string().len() };
    let [calls, messages, tools] = prompts.entry(request.role.clone()).or_default();
    *calls += 1;
    *messages += size(&request.body["messages"]);
    *tools += size(&request.body["tools"]);
}
