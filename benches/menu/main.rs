//! Measures how long a start takes with a hundred servers whose tools are known: from the start of the process to the
//! supervisor's first request, and to the list of `perihelion agents`.
//!
//! `--runs N` (20 by default). Prints one JSON line. Started with two numbers it is one of the servers.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool that is only run by hand")]
#![expect(clippy::disallowed_methods, reason = "it measures itself")]

#[path = "../program.rs"]
mod program;
#[path = "../../tests/fixtures/catalogue_mcp_server/main.rs"]
mod server;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use perihelion::llm::scripted::{Reply, Script, ScriptedModel};
use serde_json::json;
use server::names::{self, SERVERS};

/// Tools of each server.
const TOOLS: usize = 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first.parse::<usize>().is_ok()) {
        return server::main();
    }
    let runs = arguments.iter().skip_while(|one| *one != "--runs").nth(1);
    measure(runs.map_or(20, |runs| runs.parse().unwrap()));
}

fn measure(runs: usize) {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("mcp-servers.toml"), servers(home.path())).unwrap();
    let (asked, heard) = mpsc::channel();
    let script = Script::new().respond_with(move |request| {
        asked.send((request.role.clone(), Instant::now())).unwrap();
        let decision = json!({
            "thought_process": "", "plan": [], "selected_agents": ["qa"], "tasks": [],
            "clarification": null,
        });
        let is_supervisor = request.role == "supervisor";
        Some(if is_supervisor { Reply::json(decision) } else { Reply::text("Done.") })
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let model = runtime.block_on(ScriptedModel::start(script)).unwrap();
    let perihelion = |arguments: &[&str]| {
        let began = Instant::now();
        let mut command = Command::new(program::path());
        command.args(arguments).current_dir(home.path()).env_clear();
        command.env("HOME", home.path()).env("OPENAI_BASE_URL", model.url());
        command.env("OPENAI_API_KEY", "none").stdout(Stdio::null());
        assert!(command.status().unwrap().success(), "{arguments:?}");
        began
    };
    let scan = perihelion(&["agents"]).elapsed();
    let mut menus = Vec::new();
    let mut lists = Vec::new();
    for _ in 0..runs {
        let began = perihelion(&["run", "Where is the parcel?", "--quiet"]);
        let requests: Vec<(String, Instant)> = heard.try_iter().collect();
        let (role, first) = requests.first().unwrap();
        assert_eq!(role, "supervisor");
        menus.push(first.duration_since(began));
        lists.push(perihelion(&["agents"]).elapsed());
    }
    let started = std::fs::read_to_string(home.path().join("started")).unwrap();
    assert_eq!(started.lines().count(), SERVERS, "no server was started but to ask for its tools");
    let line = json!({
        "bench": "menu", "servers": SERVERS, "tools": SERVERS * TOOLS, "runs": runs,
        "first_scan_ms": scan.as_millis() as u64,
        "start_to_menu_ms": spread(menus), "agents_ms": spread(lists),
        "is_optimised": !cfg!(debug_assertions),
    });
    println!("{line}");
}

/// Writes the tables of all servers, each of them this very program.
fn servers(home: &Path) -> String {
    let program = std::env::current_exe().unwrap();
    let started = home.join("started");
    let mut text = String::new();
    for server in 0..SERVERS {
        let name = names::name(server);
        write!(
            text,
            "[mcp_servers.{name}]\ncommand = {program:?}\nargs = [\"{server}\", \"{TOOLS}\"]\n\
             env = {{ STARTED = {started:?} }}\n"
        )
        .unwrap();
    }
    text
}

fn spread(mut times: Vec<Duration>) -> serde_json::Value {
    times.sort_unstable();
    let milliseconds = |time: &Duration| (time.as_secs_f64() * 1e4).round() / 10.0;
    let median = times.get(times.len() / 2).map(milliseconds);
    json!({ "p50": median, "max": times.last().map(milliseconds) })
}
