//! Servers that are not up when a worker starts: it asks them again, and its runs wait for them.

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

/// X5: the wait is bounded, and then the run says which agents were missing.
#[tokio::test]
async fn a_run_whose_servers_never_come_begins_without_them_and_fails() {
    let mut site = site(Kind::Sqlite, noting()).await;
    site.world.set("PERIHELION_TRUST_PINS", "off");
    site.world.set("PERIHELION_SERVERS_WAIT_SEC", "0.5");
    site.world.write("mcp-servers.toml", &servers(env!("CARGO_BIN_EXE_perihelion")));
    site.submit("n").await;
    let worker = site.worker();
    site.until("n", "failed").await;
    let listed = site.world.run(&["threads", "list", "--status", "failed", "--json"]).await;
    let listed = listed.code(0).json();
    assert_eq!(listed[0]["status"], "failed", "{listed}");
    assert!(listed[0]["error"].as_str().is_some_and(|why| !why.is_empty()), "{listed}");
    site.stop(worker).await;
}
