//! The servers file changes while threads are under way.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use perihelion::ids::ThreadId;
use perihelion::llm::scripted::{Reply, Script};
use perihelion::mcp::{PoolOptions, ServersFile};
use perihelion::runtime::{Answer, RunReport, RunStatusView, Runtime};
use perihelion::swarm::Request;
use serde_json::{Map, json};

use super::{A, B, Room, assert_done, decide, one_call, script};
use crate::support::hostile::{assert_none_left, table};

fn read(room: &Room, text: &str) -> ServersFile {
    let env = |name: &str| room.env.get(name).cloned();
    ServersFile::parse("f".as_ref(), text, &env).unwrap()
}

/// S1.09, X6
#[tokio::test]
async fn a_thread_whose_agent_was_removed_by_a_reload_is_parked_until_another_reload_restores_it() {
    let room = Room::in_memory(one_call("look_up", json!({ "key": "color" })))
        .await
        .with_alpha("default_tools_approval_mode = \"prompt\"");
    let runtime = room.open().await;
    let request = Request { question: "Go".into(), ..Request::default() };
    let options = runtime.run_options();
    let waiting = runtime.ask(room.thread, None, request, options).await.unwrap();
    assert_eq!(waiting.interrupts[0].kind, "approval");
    let reloaded = runtime.agents().reload(read(&room, &room.workshop("beta", ""))).await;
    assert!(reloaded.removed.contains(&"alpha".to_owned()), "{reloaded:?}");
    assert!(runtime.agents().list().iter().all(|agent| agent.name != A));
    runtime.answer(room.thread, None, Answer::Approve { reason: None }).await.unwrap();
    let parked = runtime.resume(room.thread, runtime.run_options()).await.unwrap();
    let error = parked.error.unwrap();
    assert!(error.contains("the next node no longer exists: mcp_agent_alpha"), "{error}");

    runtime.agents().reload(read(&room, &room.servers)).await;
    let report = runtime.resume(room.thread, runtime.run_options()).await.unwrap();
    assert_done(&report);
    assert_eq!(report.results[0].output, "Found it.");
    runtime.close().await;
}

/// Calls a tool that lingers, and then one that could have been switched off or gated meanwhile.
fn linger_and_echo(directory: &Path) -> Script {
    let linger = json!({ "until": directory.join("until"), "begun": directory.join("begun") });
    script(move |asked| match (asked.role, asked.tools, asked.results) {
        ("supervisor", _, 0) => Some(decide(&["look"], &[A], json!([]))),
        ("agent", 0, _) => Some(Reply::call("linger", linger.clone())),
        ("agent", 1, _) => Some(Reply::call("echo", json!({ "said": "aloud" }))),
        ("agent", ..) => Some(Reply::text("Done.")),
        _ => None,
    })
}

/// Asks, and has the servers file say something else of `alpha` while its agent is at work.
async fn changed_during(room: &mut Room, directory: &Path, lines: &str) -> (Runtime, RunReport) {
    room.servers = table("alpha", "plain", "open_world = false");
    let runtime = room.open().await;
    let request = Request { question: "Go".into(), ..Request::default() };
    let asking = runtime.ask(room.thread, None, request, runtime.run_options());
    let change = async {
        let started = perihelion::clock::monotonic();
        while !directory.join("begun").exists() {
            assert!(started.elapsed() < Duration::from_secs(30), "the call did not arrive");
            tokio::task::yield_now().await;
        }
        let reloaded = runtime.agents().reload(read(room, &table("alpha", "plain", lines))).await;
        assert_eq!(reloaded.replaced, ["alpha"]);
        std::fs::write(directory.join("until"), "").unwrap();
    };
    let (report, ()) = tokio::join!(asking, change);
    let report = report.unwrap();
    (runtime, report)
}

/// X6: a rule that was made stricter holds for the next call, also of an agent that began before.
#[tokio::test]
async fn a_tool_that_is_gated_while_its_agent_works_waits_for_a_person() {
    let directory = tempfile::tempdir().unwrap();
    let mut room = Room::in_memory(linger_and_echo(directory.path())).await;
    let gated = "tools.echo.approval_mode = \"prompt\"\nopen_world = false";
    let (runtime, waiting) = changed_during(&mut room, directory.path(), gated).await;
    assert_eq!(waiting.status, RunStatusView::Interrupted, "{waiting:#?}");
    let [open] = waiting.interrupts.as_slice() else { panic!("{waiting:#?}") };
    assert_eq!((&*open.kind, &open.payload["tool"]), ("approval", &json!("echo")));
    runtime.answer(room.thread, None, Answer::Approve { reason: None }).await.unwrap();
    let report = runtime.resume(room.thread, runtime.run_options()).await.unwrap();
    assert_done(&report);
    assert!(room.agent_requests(A).last().unwrap().contains("aloud"), "it was called");
    runtime.close().await;
    let again = room.replay().await;
    assert!(again.divergence.is_none(), "{again:?}");
}

/// X6: a question is decided by its answer, also if its tool needs no approval any longer.
#[tokio::test]
async fn an_answer_counts_even_if_the_rule_was_relaxed_while_the_question_was_open() {
    let edited = Map::from_iter([("line".to_owned(), json!("less"))]);
    let denied = Answer::Deny { reason: None };
    let changed = Answer::Edit { arguments: edited, reason: None };
    for (answer, lines) in [(denied, &[] as &[&str]), (changed, &["less"])] {
        let room = Room::in_memory(one_call("append", json!({ "line": "more" }))).await;
        let room = room.with_alpha("tools.append.approval_mode = \"prompt\"");
        let runtime = room.open().await;
        let request = Request { question: "Go".into(), ..Request::default() };
        let waiting = runtime.ask(room.thread, None, request, runtime.run_options()).await.unwrap();
        assert_eq!(waiting.interrupts[0].kind, "approval", "{waiting:#?}");
        let relaxed = room.workshop("alpha", "tools.append.approval_mode = \"approve\"");
        let reloaded = runtime.agents().reload(read(&room, &relaxed)).await;
        assert!(reloaded.replaced.contains(&"alpha".to_owned()), "{reloaded:?}");
        runtime.answer(room.thread, None, answer).await.unwrap();
        assert_done(&runtime.resume(room.thread, runtime.run_options()).await.unwrap());
        runtime.close().await;
        assert_eq!(room.log("alpha"), lines);
        let again = room.replay().await;
        assert!(again.divergence.is_none(), "{again:?}");
    }
}

/// X6, X3: and so does what strangers are said to have written, and that a tool is not offered any longer.
#[tokio::test]
async fn a_server_distrusted_while_its_agent_works_taints_later_results() {
    for (lines, is_called) in [
        ("tools.echo.effect = \"read_only\"\nopen_world = true", true),
        ("disabled_tools = [\"echo\"]\nopen_world = false", false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let mut room = Room::in_memory(linger_and_echo(directory.path())).await;
        let (runtime, report) = changed_during(&mut room, directory.path(), lines).await;
        assert_done(&report);
        runtime.close().await;
        let prompt = room.agent_requests(A).last().unwrap().last_text().to_owned();
        assert_eq!(prompt.contains("aloud"), is_called, "{prompt}");
        assert_eq!(prompt.contains("has no tool named: echo"), !is_called, "{prompt}");
        let state = room.state().await;
        let tainted_by = &state.results.get(0).unwrap().tainted_by;
        assert_eq!(tainted_by.contains("alpha.echo"), is_called, "{tainted_by:?}");
        let again = room.replay().await;
        assert!(again.divergence.is_none(), "{again:?}");
    }
}

fn both_look_up() -> Script {
    script(|asked| match (asked.role, asked.tools, asked.results) {
        ("supervisor", _, 0) => Some(decide(&["look"], &[A, B], json!([]))),
        ("agent", 0, _) => Some(Reply::call("look_up", json!({ "key": "color" }))),
        ("agent", ..) => Some(Reply::text("It is teal.")),
        _ => None,
    })
}

/// X6: runs continue over a thousand reloads, one of which in two replaces a server that they use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn active_runs_continue_over_a_thousand_reloads_and_no_process_is_left() {
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
    let reloads = AtomicUsize::new(0);
    let runs = AtomicUsize::new(0);
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
            runtime.agents().reload(file).await;
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
