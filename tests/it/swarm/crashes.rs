//! Crashes: no model call is paid twice, no tool call is sent twice, and an unknown outcome is put to a person.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use perihelion::runtime::{Answer, RunStatusView};
use serde_json::json;

use super::{A, B, Room, approved, assert_done, decide, finish, one_call, script};
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(
    a_crash_during_a_model_call_repeats_that_call_alone,
    a_crash_during_a_tool_call_asks_a_person,
    a_repeatable_call_is_sent_again_after_a_crash
);

/// A plan of two agents: alpha writes a line and then hangs in the model, beta is done at once.
fn hangs_once() -> Script {
    Script::new()
        .rule(Rule::new(finish()).role(Role::Supervisor).contains("<result number"))
        .rule(Rule::new(decide(&["go"], &[A, B], json!([]))).role(Role::Supervisor))
        .rule(Rule::new(Reply::text("Beside it.")).role(Role::Agent).agent(B))
        .rule(
            Rule::new(Reply::call("append", json!({ "line": "once" })))
                .role(Role::Agent)
                .after_tool_results(0),
        )
        .rule(Rule::new(Reply::hang()).role(Role::Agent).times(1))
        .rule(Rule::new(Reply::text("Written.")).role(Role::Agent))
        .rule(Rule::new(approved()).role(Role::Reflector))
        .rule(Rule::new(Reply::text("Done [1].")).role(Role::Qa))
}

async fn a_crash_during_a_model_call_repeats_that_call_alone(fixture: &Fixture) {
    let room = Room::on(fixture, hangs_once()).await;
    let mut run = room.ask_in_background("Go").await;
    // Supervisor, both agents, beta's reflector, and alpha's second call, which hangs.
    room.until(&mut run, room.model.wait_for_requests(5)).await;
    room.until(&mut run, until_settled(&room, "alpha.append")).await;
    room.crash(run).await;

    let report = room.resume().await;
    assert_done(&report);
    assert_eq!(room.log("alpha"), ["once"]);
    assert_eq!(report.results.len(), 2);
    // Only the call that had no answer was made again.
    room.assert_nothing_paid_twice("line 1");
    let hung = room.agent_requests(A).into_iter().filter(|one| one.tool_results() == 1).count();
    assert_eq!((room.requests(Role::Supervisor).len(), hung), (2, 2));
    assert_eq!(room.agent_requests(B).len(), 1);
}

/// Waits until a call's outcome is on record and beta's work is kept.
async fn until_settled(room: &Room, call: &str) {
    loop {
        let effects = room.store.effects(room.thread, None).await.unwrap();
        let settled = effects.iter().any(|row| row.name == call && row.outcome.is_some());
        let pending = room.store.load(room.thread, None).await.unwrap().pending;
        if settled && pending.len() == 1 {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// X2
async fn a_crash_during_a_tool_call_asks_a_person(fixture: &Fixture) {
    let crashed = async || {
        let room = Room::on(fixture, one_call("append_and_hang", json!({ "line": "once" }))).await;
        let mut run = room.ask_in_background("Go").await;
        room.until(&mut run, room.until_log("alpha", 1)).await;
        room.crash(run).await;
        let report = room.resume().await;
        assert_eq!(report.status, RunStatusView::Interrupted, "{report:#?}");
        let [open] = report.interrupts.as_slice() else { panic!("{report:#?}") };
        assert_eq!((&*open.kind, &*open.agent), ("outcome_unknown", A));
        assert_eq!(open.payload["tool"], "alpha.append_and_hang");
        assert_eq!(room.log("alpha").len(), 1, "it was not sent again by itself");
        room
    };
    let prompt = |room: &Room| room.agent_requests(A)[1].last_text().to_owned();

    let room = crashed().await;
    let result = json!("line 1, as the log says");
    assert_done(&room.answer(Answer::OutcomeDone { result }).await);
    assert_eq!(room.log("alpha").len(), 1);
    assert!(prompt(&room).contains("line 1, as the log says"), "{}", prompt(&room));
    room.assert_nothing_paid_twice("");

    let room = crashed().await;
    assert_done(&room.answer(Answer::OutcomeDone { result: json!(null) }).await);
    assert!(prompt(&room).contains("A person confirmed"), "{}", prompt(&room));

    let room = crashed().await;
    std::fs::write(format!("{}.go", room.log_path("alpha").display()), "").unwrap();
    assert_done(&room.answer(Answer::OutcomeRetry).await);
    assert_eq!(room.log("alpha").len(), 2, "a person wanted it again: {}", prompt(&room));
    assert!(prompt(&room).contains("line 2"), "{}", prompt(&room));

    let room = crashed().await;
    assert_done(&room.answer(Answer::OutcomeSkip).await);
    assert_eq!(room.log("alpha").len(), 1);
    assert!(prompt(&room).contains("a person decided to skip this call"), "{}", prompt(&room));
    room.assert_nothing_paid_twice("");
}

/// X2
async fn a_repeatable_call_is_sent_again_after_a_crash(fixture: &Fixture) {
    let room = Room::on(fixture, one_call("append_and_hang", json!({ "line": "twice" })))
        .await
        .with_alpha("repeatable = [\"append_and_hang\"]");
    let mut run = room.ask_in_background("Go").await;
    room.until(&mut run, room.until_log("alpha", 1)).await;
    room.crash(run).await;
    std::fs::write(format!("{}.go", room.log_path("alpha").display()), "").unwrap();
    assert_done(&room.resume().await);
    assert_eq!(room.log("alpha"), ["twice", "twice"]);
    room.assert_nothing_paid_twice("");
}

/// A person's decision to skip a call holds, also when the agent waits or crashes once more after it.
#[tokio::test]
async fn a_skipped_call_stays_skipped_over_the_next_interrupt() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.tools, asked.results) {
        ("supervisor", _, 0) => Some(decide(&["write"], &[A], json!([]))),
        ("agent", 0, _) => Some(Reply::call("append_and_hang", json!({ "line": "one" }))),
        ("agent", 1, _) => Some(Reply::call("append", json!({ "line": "two" }))),
        ("agent", ..) => Some(Reply::text("Written.")),
        _ => None,
    }))
    .await
    .with_alpha("tools.append.approval_mode = \"prompt\"");
    let mut run = room.ask_in_background("Go").await;
    room.until(&mut run, room.until_log("alpha", 1)).await;
    room.crash(run).await;
    assert_eq!(room.resume().await.interrupts[0].kind, "outcome_unknown");
    let report = room.answer(Answer::OutcomeSkip).await;
    assert_eq!(report.interrupts[0].kind, "approval", "{report:#?}");
    assert_done(&room.answer(Answer::Approve { reason: None }).await);
    assert_eq!(room.log("alpha"), ["one", "two"]);
    room.assert_nothing_paid_twice("");
}

/// The second crash finds what the first resume recorded.
#[tokio::test]
async fn a_resume_that_crashes_loses_no_step() {
    let script = Script::new()
        .rule(Rule::new(finish()).role(Role::Supervisor).contains("<result number"))
        .rule(Rule::new(decide(&["go"], &[A], json!([]))).role(Role::Supervisor))
        .rule(Rule::new(Reply::text("Written.")).role(Role::Agent))
        .rule(Rule::new(Reply::hang()).role(Role::Reflector).times(2))
        .rule(Rule::new(approved()).role(Role::Reflector))
        .rule(Rule::new(Reply::text("Done.")).role(Role::Qa));
    let room = Room::in_memory(script).await;
    let mut run = room.ask_in_background("Go").await;
    room.until(&mut run, room.model.wait_for_requests(3)).await;
    room.crash(run).await;
    let mut run = room.resume_in_background().await;
    room.until(&mut run, room.model.wait_for_requests(4)).await;
    room.crash(run).await;
    assert_done(&room.resume().await);
    assert_eq!(room.requests(Role::Reflector).len(), 3);
    assert_eq!((room.requests(Role::Agent).len(), room.requests(Role::Supervisor).len()), (1, 2));
}

/// The same in a later turn of the thread, whose history holds earlier calls and answers.
#[tokio::test]
async fn a_crash_during_a_tool_call_of_a_second_turn_asks_a_person() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.tools, asked.results) {
        ("supervisor", _, 0) => Some(decide(&["write"], &[A], json!([]))),
        ("agent", 0, _) => Some(Reply::call("append_and_hang", json!({ "line": "one" }))),
        ("agent", ..) => Some(Reply::text("Written.")),
        _ => None,
    }))
    .await;
    let go = format!("{}.go", room.log_path("alpha").display());
    std::fs::write(&go, "").unwrap();
    assert_done(&room.ask("Go").await);
    std::fs::remove_file(&go).unwrap();
    let mut run = room.ask_in_background("Go").await;
    room.until(&mut run, room.until_log("alpha", 2)).await;
    room.crash(run).await;
    let report = room.resume().await;
    assert_eq!(report.status, RunStatusView::Interrupted, "{report:#?}");
    assert_eq!(report.interrupts[0].kind, "outcome_unknown");
    let result = json!("line 2, as the log says");
    assert_done(&room.answer(Answer::OutcomeDone { result }).await);
    assert_eq!(room.log("alpha").len(), 2);
}
