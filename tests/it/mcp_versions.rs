//! Servers of every version of the protocol, and what each is told.

use std::collections::BTreeSet;

use perihelion::mcp::{CallContext, CallRound, Pool, PoolOptions, Reply, ServersFile, ToolHost};
use serde_json::{Map, json};

fn pool(protocol: &str, log: &str, lines: &str) -> Pool {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/asking_mcp_server");
    assert!(program.exists(), "build it with `cargo build --examples`: {}", program.display());
    let file = format!(
        "[mcp_servers.x]\ncommand = {program:?}\nenv = {{ PROTOCOL = {protocol:?}, LOG = {log:?} }}\n{lines}\n"
    );
    let file = ServersFile::parse("mcp-servers.toml".as_ref(), &file, &|_| None).unwrap();
    Pool::new(file, PoolOptions::default())
}

/// X6
#[tokio::test]
async fn every_version_from_2024_to_2026_is_agreed_on_and_its_tools_are_called() {
    for protocol in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let pool = pool(protocol, "", "");
        let info = pool.scan().await.remove(0).outcome.unwrap();
        assert_eq!(info.protocol_version, protocol);
        let arguments = json!({ "item": "it" }).as_object().cloned().unwrap();
        let outcome = pool.call("x", "echo", arguments, CallContext::default()).await.unwrap();
        assert_eq!(outcome.text, "echo it");
        assert_eq!(outcome.via.unwrap().protocol_version, protocol);
        pool.close().await;
    }
}

/// X6
#[tokio::test]
async fn an_unknown_version_is_refused_with_the_list_of_known_ones() {
    for protocol in ["2019-01-01", "2025-12-31"] {
        let pool = pool(protocol, "", "");
        let error = pool.scan().await.remove(0).outcome.unwrap_err().to_string();
        assert!(error.contains(protocol) && error.contains("2025-11-25"), "{error}");
        pool.close().await;
    }
}

/// X6
#[tokio::test]
async fn a_server_is_not_stopped_as_unused_while_its_task_is_waited_for() {
    let room = tempfile::tempdir().unwrap();
    let log = room.path().join("log");
    let pool = pool("2026-07-28", &log.display().to_string(), "idle_timeout_sec = 0.01");
    let context = CallContext::default;
    let begun = pool.exchange("x", "bake", CallRound::first(Map::new()), context()).await.unwrap();
    let Reply::Task { task } = begun else { panic!("{begun:?}") };
    let asked = || std::fs::read_to_string(log.with_extension("asked")).unwrap_or_default();
    let waiting =
        pool.exchange("x", "bake", CallRound::Wait { task, answered: BTreeSet::new() }, context());
    let ready = async {
        while asked().lines().count() < 10 {
            tokio::task::yield_now().await;
        }
        std::fs::write(log.with_extension("go"), "").unwrap();
    };
    let (reply, ()) = tokio::join!(waiting, ready);
    assert!(matches!(reply, Ok(Reply::Done(outcome)) if outcome.text == "baked"));
    let asked = asked();
    let processes: BTreeSet<&str> = asked.lines().collect();
    assert_eq!(processes.len(), 1, "one process was asked all the time: {asked}");
    pool.close().await;
}
