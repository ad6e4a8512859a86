//! Servers that ask people during a call, and those that make a task of it: days may pass, nothing happens twice.

use perihelion::llm::scripted::Script;
use perihelion::runtime::{Answer, Error, RunReport, RunStatusView};
use serde_json::{Value, json};

use super::{A, Room, assert_done, one_call};
use crate::store_suite::{on_every_store, stores, stores::Fixture};

on_every_store!(
    a_servers_question_waits_for_a_person_and_the_call_continues_with_the_answer,
    a_crash_during_a_task_keeps_asking_after_it_and_makes_no_second_one
);

const OLD: &str = "2025-11-25";
const NEW: &str = "2026-07-28";

fn calls(tool: &'static str) -> Script {
    one_call(tool, json!({ "item": "bread" }))
}

async fn room_on(fixture: &Fixture, tool: &'static str, protocol: &str, lines: &str) -> Room {
    let mut room = Room::on(fixture, calls(tool)).await;
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/asking_mcp_server");
    assert!(program.exists(), "build it with `cargo build --examples`: {}", program.display());
    let log = room.log_path("alpha").display().to_string();
    room.servers = format!(
        "[mcp_servers.alpha]\ncommand = {program:?}\n\
         env = {{ LOG = {log:?}, PROTOCOL = {protocol:?} }}\n{lines}\n"
    );
    room
}

async fn room(tool: &'static str, protocol: &str, lines: &str) -> Room {
    room_on(&stores::memory().await, tool, protocol, lines).await
}

fn only(report: &RunReport) -> &Value {
    assert_eq!(report.status, RunStatusView::Interrupted, "{report:#?}");
    let [open] = report.interrupts.as_slice() else { panic!("{report:#?}") };
    assert_eq!((&*open.kind, &*open.agent), ("elicitation", A));
    &open.payload
}

/// What the agent's model was told last.
fn prompt(room: &Room) -> String {
    let prompt = room.agent_requests(A).last().unwrap().last_text().to_owned();
    // It stands in a tag, escaped.
    prompt.replace("&quot;", "\"")
}

fn lines(room: &Room, beside: &str) -> usize {
    let path = format!("{}.{beside}", room.log_path("alpha").display());
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}

fn address() -> Answer {
    Answer::Value(json!({ "city": "Bern" }))
}

/// X6
async fn a_servers_question_waits_for_a_person_and_the_call_continues_with_the_answer(
    fixture: &Fixture,
) {
    let room = room_on(fixture, "order", NEW, "").await;
    let report = room.ask("Order bread").await;
    let asked = only(&report);
    assert_eq!((&asked["server"], &asked["tool"]), (&json!("alpha"), &json!("order")));
    assert_eq!((&asked["message"], &asked["mode"]), (&json!("Where to?"), &json!("form")));
    assert_eq!(asked["requested_schema"]["required"], json!(["city"]));
    assert!(asked.get("warning").is_none(), "the call was ended by the server itself: {asked}");

    // A resume without an answer asks the same and pays nothing.
    assert_eq!(room.resume().await.interrupts, report.interrupts);
    assert_eq!(room.agent_requests(A).len(), 1);

    assert_done(&room.answer(address()).await);
    assert_eq!(room.log("alpha"), ["bread to \"Bern\", \"slow\""], "the default was filled in");
    assert!(prompt(&room).contains("bread to"), "{}", prompt(&room));
    room.assert_nothing_paid_twice("");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_the_form_is_refused_and_the_question_stays_open() {
    let room = room("order", NEW, "").await;
    room.ask("Order bread").await;
    let runtime = room.open().await;
    for (answer, complaint) in [
        (Answer::Value(json!({ "city": "B" })), "at /city"),
        (Answer::Value(json!({ "town": "Bern" })), "no field named town"),
        (Answer::Value(json!("Bern")), "JSON object"),
        (Answer::Approve { reason: None }, "\"city\""),
        (Answer::Message("Bern".into()), "--message is an answer to clarification"),
    ] {
        let error: Error = runtime.answer(room.thread, None, answer).await.unwrap_err();
        assert!(error.to_string().contains(complaint), "{error}");
    }
    room.close(runtime).await;
    assert_done(&room.answer(address()).await);
    assert_eq!(room.log("alpha").len(), 1);
}

#[tokio::test]
async fn a_refused_question_reaches_the_server_as_such() {
    let room = room("order", NEW, "").await;
    room.ask("Order bread").await;
    assert_done(&room.answer(Answer::Deny { reason: None }).await);
    assert!(room.log("alpha").is_empty());
    assert!(prompt(&room).contains("not ordered: \"decline\""), "{}", prompt(&room));
}

#[tokio::test]
async fn an_address_is_shown_whole_and_the_call_continues_once_a_person_was_there() {
    for protocol in [OLD, NEW] {
        let room = room("pay", protocol, "").await;
        let report = room.ask("Pay").await;
        let asked = only(&report);
        assert_eq!(asked["url"], "https://bank.example/pay?order=7");
        assert_eq!(asked["mode"], "url");
        assert_done(&room.answer(Answer::Approve { reason: None }).await);
        assert_eq!(room.log("alpha"), ["paid bread"], "{protocol}");
    }
}

/// X6
#[tokio::test]
async fn questions_for_a_password_are_refused() {
    for protocol in [OLD, NEW] {
        let room = room("log_in", protocol, "").await;
        assert_done(&room.ask("Log in").await);
        assert!(prompt(&room).contains("log in: \"decline\""), "{}", prompt(&room));
    }
}

#[tokio::test]
async fn questions_of_several_rounds_are_each_asked_once() {
    for protocol in [OLD, NEW] {
        let room = room("two_steps", protocol, "").await;
        let first = room.ask("Go").await;
        assert_eq!(only(&first)["message"], "First?");
        let second = room.answer(Answer::Value(json!({ "n": 1 }))).await;
        assert_eq!(only(&second)["message"], "Second?", "{protocol}");
        assert_done(&room.answer(Answer::Value(json!({ "n": 2 }))).await);
        assert_eq!(room.log("alpha"), ["1 and 2"], "{protocol}");
    }
}

/// X6: A server of before 2026-07-28 asks during the call, which cannot wait for days.
#[tokio::test]
async fn a_question_during_a_call_ends_it_and_an_answer_makes_it_again_with_a_persons_knowledge() {
    for protocol in ["2025-06-18", OLD] {
        let room = room("order", protocol, "").await;
        let report = room.ask("Order bread").await;
        let asked = only(&report);
        let warning = asked["warning"].as_str().unwrap();
        assert!(warning.contains("makes the call once more"), "{warning}");
        assert!(room.log("alpha").is_empty());
        assert_done(&room.answer(address()).await);
        assert_eq!(room.log("alpha"), ["bread to \"Bern\", \"slow\""]);
    }
    let declared = room("order", OLD, "repeatable = [\"order\"]").await;
    let report = declared.ask("Order bread").await;
    assert!(
        only(&report).get("warning").is_none(),
        "the operator has said that it may be repeated"
    );
    let refused = declared.answer(Answer::Deny { reason: None }).await;
    assert_done(&refused);
    assert!(declared.log("alpha").is_empty());
    assert!(
        prompt(&declared).contains("the call ended with: not ordered"),
        "{}",
        prompt(&declared)
    );
}

/// X6
async fn a_crash_during_a_task_keeps_asking_after_it_and_makes_no_second_one(fixture: &Fixture) {
    let room = room_on(fixture, "bake", NEW, "").await;
    let mut run = room.ask_in_background("Bake").await;
    let asked_after = async {
        let started = perihelion::clock::monotonic();
        while lines(&room, "asked") < 2 {
            assert!(started.elapsed().as_secs() < 30, "nobody asked after the task");
            tokio::task::yield_now().await;
        }
    };
    room.until(&mut run, asked_after).await;
    room.crash(run).await;
    std::fs::write(format!("{}.go", room.log_path("alpha").display()), "").unwrap();
    assert_done(&room.resume().await);
    assert_eq!(room.log("alpha"), ["bake begun"], "one task was made");
    assert!(prompt(&room).contains("baked"), "{}", prompt(&room));
    room.assert_nothing_paid_twice("");
}

#[tokio::test]
async fn a_task_that_asks_gets_its_answer_once_and_ends() {
    let room = room("bake_to_taste", NEW, "").await;
    let report = room.ask("Bake").await;
    assert_eq!(only(&report)["message"], "Sweet?");
    assert_done(&room.answer(Answer::Value(json!({ "sweet": true }))).await);
    assert_eq!(room.log("alpha"), ["bake_to_taste begun"]);
    assert_eq!(lines(&room, "answers"), 1);
    assert!(prompt(&room).contains("\"sweet\":true"), "{}", prompt(&room));
}

/// X6
#[tokio::test]
async fn a_task_that_the_server_lost_asks_a_person_unless_the_call_may_be_repeated() {
    let room = room("vanish", NEW, "").await;
    let report = room.ask("Go").await;
    let [open] = report.interrupts.as_slice() else { panic!("{report:#?}") };
    assert_eq!((&*open.kind, &*open.agent), ("outcome_unknown", A));
    assert_eq!(open.payload["tool"], "alpha.vanish");
    assert!(open.payload["reason"].as_str().unwrap().contains("no such task"), "{open:?}");
    // A person wants it again: it is called once more, and lost once more.
    let again = room.answer(Answer::OutcomeRetry).await;
    assert_eq!(again.interrupts[0].kind, "outcome_unknown");
    assert_eq!(room.log("alpha").len(), 2);
    assert_done(&room.answer(Answer::OutcomeDone { result: json!("in the oven") }).await);
    assert_eq!(room.log("alpha").len(), 2);
    assert!(prompt(&room).contains("in the oven"), "{}", prompt(&room));
}

#[tokio::test]
async fn a_task_that_does_not_end_in_time_is_asked_to_stop() {
    let room = room("bake", NEW, "repeatable = [\"bake\"]\ntask_timeout_sec = 0.05").await;
    assert_done(&room.ask("Bake").await);
    assert!(prompt(&room).contains("task_timeout_sec"), "{}", prompt(&room));
    assert_eq!(lines(&room, "cancelled"), 1);
}

/// X2, X6: the task continues at the server, so nobody may take its call for failed and make it again.
#[tokio::test]
async fn a_task_that_runs_at_the_deadline_asks_a_person_what_became_of_it() {
    let room = room("bake", NEW, "").await.with_env("PERIHELION_LIMITS_DEADLINE_SEC", "3");
    let report = room.ask("Bake").await;
    let [open] = report.interrupts.as_slice() else { panic!("{report:#?}") };
    assert_eq!((&*open.kind, &*open.agent), ("outcome_unknown", A));
    assert!(open.payload["reason"].as_str().unwrap().contains("time limit"), "{open:?}");
    assert_eq!(room.log("alpha"), ["bake begun"]);
    assert_done(&room.answer(Answer::OutcomeDone { result: json!("in the oven") }).await);
    assert_eq!(room.log("alpha"), ["bake begun"], "one task was made");
    assert!(prompt(&room).contains("in the oven"), "{}", prompt(&room));
}
