//! Servers that are not up when a worker starts: it asks them again, and its runs wait for them.

use serde_json::Value;

use super::processes::{Kind, on_both_databases, site};
use crate::cli::world::noting;

on_both_databases!(a_worker_that_started_before_its_servers_waits_for_them_and_does_the_work);

/// A server that runs once there is a file called `up`.
fn servers(command: &str) -> String {
    format!(
        "[mcp_servers.notes]\ncommand = \"sh\"\nrequired = true\nopen_world = false\n\
         args = [\"-c\", \"test -f up && exec {command} mcp notes --file notes.jsonl\"]\n\
         default_tools_approval_mode = \"auto\"\n"
    )
}

/// X5
async fn a_worker_that_started_before_its_servers_waits_for_them_and_does_the_work(on: Kind) {
    let mut site = site(on, noting()).await;
    site.world.set("PERIHELION_TRUST_PINS", "off");
    site.world.write("mcp-servers.toml", &servers(env!("CARGO_BIN_EXE_perihelion")));
    // Leaving a question to the workers needs no server.
    site.submit("n").await;
    let worker = site.worker();
    let threads = site.world.run(&["threads", "show", "n", "--json"]).await.code(0).json();
    assert_eq!(threads["status"], "queued", "{threads}");
    assert_eq!(site.world.model.requests().len(), 0);
    site.world.write("up", "");
    site.until("n", "done").await;
    assert_eq!(site.world.read("notes.jsonl").lines().count(), 1);
    site.stop(worker).await;
}

/// X5: the wait is bounded, and then the run begins without them.
#[tokio::test]
async fn a_run_whose_servers_never_come_begins_without_them() {
    let mut site = site(Kind::Sqlite, noting()).await;
    site.world.set("PERIHELION_TRUST_PINS", "off");
    site.world.set("PERIHELION_SERVERS_WAIT_SEC", "0.5");
    site.world.write("mcp-servers.toml", &servers(env!("CARGO_BIN_EXE_perihelion")));
    site.submit("n").await;
    let drained = site.world.run(&["worker", "--drain"]).await.code(0);
    assert!(drained.stderr.contains("did not come in time"), "{drained:?}");
    assert!(!site.world.model.requests().is_empty());
    let shown = site.world.run(&["threads", "show", "n", "--json"]).await.code(0).json();
    assert!(shown["status"] == "done" || shown["status"] == "failed", "{shown}");
}

/// A worker that drains ends well only when nothing waits any more.
#[tokio::test]
async fn a_worker_that_drains_a_read_only_database_fails_with_the_number_of_waiting_threads() {
    let site = site(Kind::Sqlite, noting()).await;
    site.submit("n").await;
    let drained = site.world.run_read_only(&["worker", "--drain"]).await;
    assert_ne!(drained.status.code(), Some(0), "{drained:?}");
    let shown = site.world.run(&["threads", "show", "n", "--json"]).await.code(0).json();
    assert_eq!(shown["status"], "queued", "{shown}");
    site.world.run(&["worker", "--drain"]).await.code(0);
    site.until("n", "done").await;
}

/// S1.12: every line is JSON: what is started, what came of it, and warnings.
#[tokio::test]
async fn with_logs_in_json_every_line_of_a_worker_is_json() {
    let mut site = site(Kind::Sqlite, noting()).await;
    site.world.set("PERIHELION_LOG_FORMAT", "json");
    site.submit("n").await;
    let drained = site.world.run(&["worker", "--drain"]).await.code(0);
    let lines: Vec<Value> =
        drained.stderr.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let message = |line: &Value| line["fields"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(lines.iter().any(|line| message(line).starts_with("working on ")), "{lines:?}");
    assert!(lines.iter().any(|line| message(line).contains(": done; ")), "{lines:?}");
    assert!(lines.iter().all(|line| line["level"].is_string() && line["timestamp"].is_string()));
}

/// X6: pins outlive a restart although the configuration can only be read.
#[tokio::test]
async fn pins_are_stored_at_the_path_in_the_settings() {
    let mut site = site(Kind::Sqlite, noting()).await;
    let pins = site.world.path("kept/pins.lock");
    std::fs::create_dir(site.world.path("kept")).unwrap();
    site.world.set("PERIHELION_TRUST_PINS_FILE", pins.to_str().unwrap());
    site.world.write("mcp-servers.toml", &servers(env!("CARGO_BIN_EXE_perihelion")));
    site.world.write("up", "");
    site.world.run(&["agents"]).await.code(0);
    assert!(std::fs::read_to_string(&pins).unwrap().contains("notes"));
    assert!(!site.world.path("mcp-servers.lock").exists());
}
