//! The servers file changes while threads are under way.

use std::sync::atomic::{AtomicUsize, Ordering};

use perihelion::ids::ThreadId;
use perihelion::llm::scripted::{Reply, Script};
use perihelion::mcp::{PoolOptions, ServersFile};
use perihelion::runtime::Answer;
use perihelion::swarm::Request;
use serde_json::json;

use super::{A, B, Room, assert_done, decide, one_call, script};
use crate::support::hostile::assert_none_left;

fn read(room: &Room, text: &str) -> ServersFile {
    let env = |name: &str| room.env.get(name).cloned();
    ServersFile::parse("f".as_ref(), text, &env).unwrap()
}

/// S1.09, X6
#[tokio::test]
async fn a_thread_whose_agent_left_by_a_reload_is_parked_until_another_reload_brings_it_back() {
    let room = Room::in_memory(one_call("look_up", json!({ "key": "color" })))
        .await
        .with_alpha("default_tools_approval_mode = \"prompt\"");
    let runtime = room.open().await;
    let request = Request { question: "Go".into(), ..Request::default() };
    let options = runtime.run_options();
    let waiting = runtime.ask(room.thread, None, request, options).await.unwrap();
    assert_eq!(waiting.interrupts[0].kind, "approval");
    let reloaded = runtime.reload(read(&room, &room.workshop("beta", ""))).await;
    assert!(reloaded.removed.contains(&"alpha".to_owned()), "{reloaded:?}");
    assert!(runtime.agents().iter().all(|agent| agent.name != A));
    runtime.answer(room.thread, None, Answer::Approve { reason: None }).await.unwrap();
    let parked = runtime.resume(room.thread, runtime.run_options()).await.unwrap();
    let error = parked.error.unwrap();
    assert!(error.contains("the next node no longer exists: mcp_agent_alpha"), "{error}");

    runtime.reload(read(&room, &room.servers)).await;
    let report = runtime.resume(room.thread, runtime.run_options()).await.unwrap();
    assert_done(&report);
    assert_eq!(report.results[0].output, "Found it.");
    runtime.close().await;
}

fn both_look_up() -> Script {
    script(|asked| match (asked.role, asked.tools, asked.results) {
        ("supervisor", _, 0) => Some(decide(&["look"], &[A, B], json!([]))),
        ("agent", 0, _) => Some(Reply::call("look_up", json!({ "key": "color" }))),
        ("agent", ..) => Some(Reply::text("It is teal.")),
        _ => None,
    })
}

/// X6: runs go on over a thousand reloads, one of which in two replaces a server that they use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_under_way_go_on_over_a_thousand_reloads_and_no_process_is_left() {
    const RELOADS: usize = 1000;
    const RUNNING: usize = 4;
    let mark = uuid::Uuid::new_v4().to_string();
    let mut room = Room::in_memory(both_look_up()).await;
    room.env.insert("MARK".to_owned(), mark.clone());
    let table = |name: &str, changed: usize| {
        let lines = format!("env_vars = [\"MARK\"]\ntool_timeout_sec = {}", 60 + changed);
        room.workshop(name, &lines)
    };
    // Alpha stays the same, beta changes every other time, gamma comes and goes.
    let text = |number: usize| {
        let gamma = if number % 10 < 5 { table("gamma", 0) } else { String::new() };
        table("alpha", 0) + &table("beta", number / 2) + &gamma
    };
    let files: Vec<ServersFile> = (1..=RELOADS).map(|number| read(&room, &text(number))).collect();
    room.servers = text(0);
    let cache = tempfile::tempdir().unwrap();
    let options = PoolOptions { cache: Some(cache.path().to_owned()), ..PoolOptions::default() };
    let runtime = room.open_with(options).await;
    let (reloads, runs) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let run = async || {
        while reloads.load(Ordering::Relaxed) < RELOADS {
            let request = Request { question: "Go".into(), ..Request::default() };
            let report = runtime.ask(ThreadId::new(), None, request, runtime.run_options()).await;
            let report = report.unwrap();
            assert_done(&report);
            assert!(report.results.iter().all(|one| one.error.is_none()), "{report:#?}");
            assert!(report.citations.iter().all(|one| one.source.ends_with(".look_up")));
            runs.fetch_add(1, Ordering::Relaxed);
        }
    };
    let reload = async {
        for file in files {
            runtime.reload(file).await;
            // All runs are spread over all reloads.
            while runs.load(Ordering::Relaxed) < reloads.load(Ordering::Relaxed) / 50 {
                tokio::task::yield_now().await;
            }
            reloads.fetch_add(1, Ordering::Relaxed);
        }
    };
    tokio::join!(futures::future::join_all((0..RUNNING).map(|_| run())), reload);
    assert!(runs.load(Ordering::Relaxed) >= RELOADS / 50);
    runtime.close().await;
    assert_none_left(&mark).await;
}
