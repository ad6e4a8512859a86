//! Servers of every version of the protocol, and what each is told.

use std::collections::BTreeSet;

use perihelion::mcp::{CallContext, CallRound, Pool, PoolOptions, Reply, ServersFile, ToolHost};
use serde_json::{Map, json};

fn pool(protocol: &str, log: &str, lines: &str) -> Pool {
    Pool::new(file(protocol, log, lines), PoolOptions::default())
}

fn file(protocol: &str, log: &str, lines: &str) -> ServersFile {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/asking_mcp_server");
    assert!(program.exists(), "build it with `cargo build --examples`: {}", program.display());
    let file = format!(
        "[mcp_servers.x]\ncommand = {program:?}\nenv = {{ PROTOCOL = {protocol:?}, LOG = {log:?} }}\n{lines}\n"
    );
    ServersFile::parse("mcp-servers.toml".as_ref(), &file, &|_| None).unwrap()
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

/// One process has all of the time: a package may have to be downloaded first.
#[tokio::test]
async fn a_server_that_starts_slowly_is_greeted_in_the_old_way_without_a_second_start() {
    let lines = "args = [\"1500\"]\nstartup_timeout_sec = 2.6";
    let pool = pool("2025-11-25", "", lines);
    let info = pool.scan().await.remove(0).outcome.unwrap();
    assert_eq!(info.protocol_version, "2025-11-25");
    pool.close().await;
}

#[tokio::test]
async fn a_task_stays_with_its_server_while_a_person_answers_and_the_servers_file_changes() {
    for (idle, change) in [("idle_timeout_sec = 0.01", ""), ("", "description = \"Bakes.\"")] {
        let room = tempfile::tempdir().unwrap();
        let log = room.path().join("log").display().to_string();
        let pool = pool("2026-07-28", &log, idle);
        let exchange = |round| pool.exchange("x", "bake_to_taste", round, CallContext::default());
        let begun = exchange(CallRound::first(Map::new())).await.unwrap();
        let Reply::Task { task } = begun else { panic!("{begun:?}") };
        let wait = |answered| CallRound::Wait { task: task.clone(), answered };
        let asked = exchange(wait(BTreeSet::new())).await.unwrap();
        assert!(matches!(asked, Reply::Asked { .. }), "{asked:?}");
        if change.is_empty() {
            perihelion::clock::sleep(std::time::Duration::from_millis(300)).await;
        } else {
            assert_eq!(pool.reload(file("2026-07-28", &log, change)).replaced, ["x"]);
        }
        let answer = json!({ "action": "accept", "content": { "sweet": true } });
        let answers = [("taste".to_owned(), answer)].into_iter().collect();
        let taken = exchange(CallRound::Tell { task: task.clone(), answers }).await.unwrap();
        assert!(matches!(taken, Reply::Task { .. }), "{taken:?}");
        let done = exchange(wait(["taste".to_owned()].into())).await.unwrap();
        assert!(matches!(done, Reply::Done(_)), "{done:?}");
        let asked = std::fs::read_to_string(format!("{log}.asked")).unwrap();
        assert_eq!(asked.lines().collect::<BTreeSet<_>>().len(), 1, "{asked}");
        pool.close().await;
    }
}

#[tokio::test]
async fn a_task_is_asked_after_again_when_its_server_is_busy() {
    let room = tempfile::tempdir().unwrap();
    let log = room.path().join("log");
    let pool = pool("2026-07-28", &log.display().to_string(), "");
    for name in ["busy", "go"] {
        std::fs::write(log.with_extension(name), "").unwrap();
    }
    let context = CallContext::default;
    let begun = pool.exchange("x", "bake", CallRound::first(Map::new()), context()).await.unwrap();
    let Reply::Task { task } = begun else { panic!("{begun:?}") };
    let round = CallRound::Wait { task, answered: BTreeSet::new() };
    let reply = pool.exchange("x", "bake", round, context()).await;
    assert!(matches!(&reply, Ok(Reply::Done(outcome)) if outcome.text == "baked"), "{reply:?}");
    pool.close().await;
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
