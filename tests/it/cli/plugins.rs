//! Plug-ins of running processes: the servers file changed, reloaded, broken; servers of other programs taken over.

use std::time::Duration;

use nix::sys::signal::Signal;
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use serde_json::{Value, json};
use tokio::process::Child;

use super::world::{SERVERS, World, answering, approved, ended, select, signal};
use crate::support::catalogue::{self, SERVERS as MANY};

const MORE: &str = "[mcp_servers.more]\ncommand = \"perihelion\"\n\
                    args = [\"mcp\", \"notes\", \"--file\", \"more.jsonl\"]\n";

/// Looks at the running processes until something holds of the first one's servers.
async fn until(world: &World, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
    let started = perihelion::clock::monotonic();
    loop {
        let seen = world.run(&["agents", "--json"]).await.code(0).json();
        let process = seen["processes"][0].clone();
        if condition(&process) {
            return process;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{what}: {seen}");
    }
}

fn phases(process: &Value) -> Vec<(&str, &str)> {
    let servers = process["servers"].as_array().into_iter().flatten();
    servers.filter_map(|one| Some((one["server"].as_str()?, one["phase"].as_str()?))).collect()
}

/// Saves as editors do: another file that takes the name over.
fn save(world: &World, text: &str) {
    world.write("saved", text);
    std::fs::rename(world.path("saved"), world.path("mcp-servers.toml")).unwrap();
}

async fn worker(world: &World) -> Child {
    let child = world.start(&["worker"]);
    let process = until(world, "the worker", |process| phases(process).len() == 2).await;
    assert_eq!(
        (process["role"].as_str(), process["pid"].as_u64()),
        (Some("worker"), child.id().map(u64::from))
    );
    child
}

async fn end(world: &World, worker: Child) -> String {
    signal(&worker, Signal::SIGTERM);
    let output = ended(worker).await.code(0).stderr;
    let seen = world.run(&["agents", "--json"]).await.code(0).json();
    assert_eq!(seen["processes"], json!([]), "it takes its leave");
    output
}

/// X6, S3.12: a plug-in is one table in a file, while everything runs.
#[tokio::test]
async fn a_worker_takes_over_a_changed_servers_file_and_keeps_the_old_one_when_the_new_one_is_broken()
 {
    let world = World::new(answering()).await;
    let worker = worker(&world).await;
    save(&world, &format!("{SERVERS}{MORE}"));
    until(&world, "the new server", |process| {
        phases(process).iter().any(|(name, _)| *name == "more")
    })
    .await;

    save(&world, &format!("{SERVERS}{MORE}comand = \"x\"\n"));
    let reload = world.run(&["agents", "reload"]).await.code(1);
    reload.says("did not reload and keeps its servers").says("did you mean `command`?");
    // An editor may have taken it away for a moment.
    std::fs::remove_file(world.path("mcp-servers.toml")).unwrap();
    let reload = world.run(&["agents", "reload"]).await.code(1);
    reload.says("did not reload and keeps its servers").says("servers file was deleted");
    save(&world, SERVERS);
    let process = until(&world, "without it", |process| phases(process).len() == 2).await;
    assert_eq!(
        phases(&process).iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ["files", "notes"]
    );

    // Another program's file counts as well, from the moment it is named.
    let other = |names: &[&str]| {
        let server = |name: &&str| {
            (
                name.to_string(),
                json!({ "command": "perihelion", "args": ["mcp", "notes", "--file", name] }),
            )
        };
        json!({ "mcpServers": names.iter().map(server).collect::<serde_json::Map<_, _>>() })
            .to_string()
    };
    world.write(".mcp.json", &other(&["one"]));
    save(&world, &format!("import = [\".mcp.json\"]\n{SERVERS}"));
    until(&world, "with an import", |process| phases(process).len() == 3).await;
    world.write(".mcp.json", &other(&["one", "two"]));
    until(&world, "with a changed import", |process| phases(process).len() == 4).await;
    let output = end(&world, worker).await;
    for words in ["servers reloaded; added: more", "servers were not reloaded", "removed: more"] {
        assert!(output.contains(words), "missing: {words}\n{output}");
    }
}

#[tokio::test]
async fn a_reload_starts_by_command_or_by_sighup_and_its_outcome_is_reported() {
    let mut world = World::new(answering()).await;
    world.set("PERIHELION_SERVERS_WATCH", "false");
    world.run(&["agents", "reload"]).await.code(0).says("no process on this machine uses");
    let worker = worker(&world).await;
    save(&world, &format!("{SERVERS}{MORE}"));
    let reload = world.run(&["agents", "reload"]).await.code(0);
    assert!(reload.stdout.contains("added: more; unchanged: files, notes"), "{reload:?}");
    // All of them were asked for their tools, so all of them run.
    let process = until(&world, "after the reload", |process| phases(process).len() == 3).await;
    assert!(phases(&process).iter().all(|(_, phase)| *phase == "running"), "{process}");

    save(&world, SERVERS);
    signal(&worker, Signal::SIGHUP);
    until(&world, "after SIGHUP", |process| phases(process).len() == 2).await;
    end(&world, worker).await;
}

#[tokio::test]
async fn files_left_by_a_killed_process_are_removed() {
    let world = World::new(answering()).await;
    let mut worker = worker(&world).await;
    worker.kill().await.unwrap();
    let seen = world.run(&["agents", "--json"]).await.code(0).json();
    assert_eq!(seen["processes"], json!([]));
    let left = std::fs::read_dir(world.path(".local/state/perihelion/processes")).unwrap();
    assert_eq!(left.count(), 0);
}

/// S1.09
#[tokio::test]
async fn agents_are_listed_with_the_state_of_their_servers() {
    let world = World::new(answering()).await;
    let first = world.run(&["agents"]).await.code(0);
    let line = |seen: &str, agent: &str| {
        seen.lines().find(|line| line.contains(agent)).unwrap().to_owned()
    };
    assert!(line(&first.stdout, "mcp_agent_files").contains("running"), "{first:?}");
    let again = world.run(&["agents"]).await.code(0);
    let files = line(&again.stdout, "mcp_agent_files");
    assert!(
        files.contains("cached") && files.contains("stdio, 20") && files.contains("3: "),
        "{files}"
    );
    let fresh = world.run(&["agents", "list", "--refresh", "--json"]).await.code(0).json();
    assert_eq!(
        (&fresh["agents"][0]["state"], &fresh["agents"][0]["transport"]),
        (&json!("running"), &json!("stdio"))
    );
    let show = world.run(&["agents", "show", "files"]).await.code(0);
    assert!(show.stdout.contains("state      cached, over stdio"), "{show:?}");
    world.write(
        "mcp-servers.toml",
        "[mcp_servers.x]\ncommand = \"x\"\nenv = { API_KEY = \"abcdef123456\" }\n",
    );
    let warned = world.run(&["agents"]).await.code(0).says("plain text");
    assert!(!warned.stderr.contains("abcdef"), "{warned:?}");
}

/// S3.12
#[tokio::test]
async fn servers_of_another_program_are_printed_or_written_into_the_servers_file() {
    let world = World::new(Script::new()).await;
    let claude = json!({ "mcpServers": { "more": {
        "command": "perihelion", "args": ["mcp", "notes", "--file", "more.jsonl"],
        "env": { "API_KEY": "sk-0123456789" },
    } } });
    world.write(".mcp.json", &claude.to_string());
    let printed = world.run(&["agents", "import", ".mcp.json"]).await.code(0);
    assert!(printed.stdout.starts_with("[mcp_servers.more]"), "{printed:?}");
    assert!(!printed.stdout.contains("sk-0123"), "{printed:?}");
    printed.says("set the environment variable MORE_API_KEY");
    assert_eq!(world.read("mcp-servers.toml"), SERVERS, "nothing is written");
    world.run(&["agents", "import", ".mcp.json", "--write"]).await.code(0).says("added to");
    assert!(world.read("mcp-servers.toml").starts_with(SERVERS.trim_end()));
    world
        .run(&["agents", "import", ".mcp.json"])
        .await
        .code(2)
        .says("there is a server of this name");
    let schema = world.run(&["agents", "schema"]).await.code(0).json();
    assert!(schema["properties"]["mcp_servers"].is_object());
}

/// S1.09: who waits is told how many servers are waited for.
#[tokio::test]
async fn a_slow_discovery_of_servers_shows_its_progress() {
    let world = World::new(Script::new()).await;
    let deaf =
        "[mcp_servers.deaf]\ncommand = \"sleep\"\nargs = [\"60\"]\nstartup_timeout_sec = 6\n";
    world.write("mcp-servers.toml", &format!("{SERVERS}\n{deaf}"));
    let looked = world.run(&["agents"]).await.code(0);
    looked.says("discovering MCP servers: 2 of 3\n").says("cannot start the MCP server deaf");
}

/// S1.09, X6: with pins and all, a hundred servers that are known are listed and asked for none of their tools again.
#[tokio::test]
async fn a_hundred_known_servers_are_listed_and_run_with_without_starting_one() {
    let world = World::new(answering()).await;
    world.write("mcp-servers.toml", &catalogue::all(world.home.path()));
    let started = || catalogue::noted(world.home.path(), "started").len();
    world.run(&["agents"]).await.code(0);
    assert_eq!(started(), MANY);
    let seen = world.run(&["agents", "--json"]).await.code(0).json();
    let agents = seen["agents"].as_array().unwrap();
    assert_eq!(agents.len(), MANY);
    assert!(agents.iter().all(|agent| agent["state"] == "cached"), "{seen}");
    world.run(&["run", "Hello", "-q"]).await.code(0);
    assert_eq!(started(), MANY, "nothing was started again");
}

#[tokio::test]
async fn the_progress_of_a_tool_is_shown_while_it_works() {
    let script = Script::new()
        .rule(Rule::new(select(&["mcp_agent_x"])).role(Role::Supervisor).not_contains("Waited."))
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor))
        .rule(Rule::new(Reply::call("progress", json!({}))).role(Role::Agent).after_tool_results(0))
        .rule(Rule::new(Reply::text("Waited.")).role(Role::Agent))
        .rule(approved())
        .rule(Rule::new(Reply::text("It is done.")).role(Role::Qa));
    let world = World::new(script).await;
    world.write("mcp-servers.toml", &crate::support::hostile::table("x", "plain", ""));
    let run = world.run(&["run", "Copy it"]).await.code(0);
    let shown =
        |line: &str| line.contains("mcp_agent_x: x.progress ") && line.contains("% copying row ");
    assert!(run.stderr.lines().any(shown), "{run:?}");
    assert_eq!(run.stdout, "It is done.\n");
}
