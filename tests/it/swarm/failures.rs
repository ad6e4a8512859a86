//! Tools and endpoints that fail: data for the agent, a fallback for QA, a clear error for the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use perihelion::llm::Role;
use perihelion::llm::scripted::Reply;
use perihelion::runtime::RunStatusView;
use perihelion::swarm::FinishReason;
use serde_json::json;

use super::{A, Room, assert_done, assert_nothing_worked, decide, script};
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(a_run_whose_supervisor_cannot_be_reached_fails_clearly_and_continues_later);

#[tokio::test]
async fn a_tool_error_returns_to_the_model_which_recovers() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.tools, asked.results) {
        ("supervisor", _, 0) => Some(decide(&["look"], &[A], json!([]))),
        ("agent", 0, _) => Some(Reply::call("look_up", json!({ "key": "colour" }))),
        ("agent", 1, _) if asked.text.contains("no fact under the key: colour") => {
            Some(Reply::call("look_up", json!({ "kex": "color" })))
        }
        ("agent", 2, _) if asked.text.contains("invalid arguments for look_up") => {
            Some(Reply::call("look_down", json!({})))
        }
        ("agent", 3, _) if asked.text.contains("there is no tool named look_down") => {
            Some(Reply::call("look_up", json!("key=color")))
        }
        ("agent", 4, _) if asked.text.contains("are not a JSON object") => {
            Some(Reply::call("look_up", json!({ "key": "color" })))
        }
        ("agent", 5, _) => Some(Reply::text("Teal.")),
        _ => None,
    }))
    .await;
    let report = room.ask("Which color?").await;
    assert_done(&report);
    let result = &report.results[0];
    assert_eq!(result.output, "Teal.");
    let errors: Vec<bool> = result.tools.iter().map(|call| call.is_error).collect();
    assert_eq!(errors, [true, true, true, true, false]);
    assert_eq!(report.citations.len(), 1, "only the call that succeeded is cited");
    let prompt = room.agent_requests(A)[1].last_text().to_owned();
    assert!(prompt.starts_with("<tool_result tool=\"look_up\" failed=\"yes\">"), "{prompt}");
}

#[tokio::test]
async fn the_same_call_is_not_made_a_fourth_time() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("supervisor", 0) => Some(decide(&["write"], &[A], json!([]))),
        ("agent", _) if asked.text.contains("will not be repeated") => Some(Reply::text("Enough.")),
        ("agent", _) => Some(Reply::call("append", json!({ "line": "again" }))),
        _ => None,
    }))
    .await;
    let report = room.ask("Go").await;
    assert_done(&report);
    assert_eq!(room.log("alpha").len(), 3);
    let errors: Vec<bool> = report.results[0].tools.iter().map(|call| call.is_error).collect();
    assert_eq!(errors, [false, false, false, true]);
}

#[tokio::test]
async fn the_tool_loop_is_bounded() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("supervisor", 0) => Some(decide(&["look"], &[A], json!([]))),
        ("agent", _) => {
            let key = format!("{}", asked.tools);
            Some(
                Reply::call("look_up", json!({ "key": key }))
                    .and_call("look_up", json!({ "key": "x" })),
            )
        }
        _ => None,
    }))
    .await
    .with_env("PERIHELION_LIMITS_MAX_TOOL_CALLS_PER_TASK", "3");
    let report = room.ask("Go").await;
    assert_nothing_worked(&report);
    let result = &report.results[0];
    assert_eq!(result.tools.len(), 3);
    assert_eq!(result.error_message(), Some("the limit of 3 tool calls for one task was reached"));
    let last = room.agent_requests(A).pop().unwrap();
    assert!(last.last_text().starts_with("not called: the limit of 3 tool calls"));
    assert!(last.body.get("tools").is_none(), "no tools are offered any more");
}

/// Names that models refuse are mapped to safe ones and back.
#[tokio::test]
async fn a_tool_with_a_name_that_models_refuse_can_be_called() {
    let room = Room::in_memory(super::one_call("desk_tidy_up", json!({ "key": "x" }))).await;
    let report = room.ask("Tidy up").await;
    assert_done(&report);
    assert_eq!(report.citations[0].source, "alpha.desk/tidy up");
    let first = &room.agent_requests(A)[0];
    let shown: Vec<&str> = first.body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    assert_eq!(
        shown,
        ["look_up", "append", "append_and_hang", "paper", "desk_tidy_up", "perihelion_not_mine"]
    );
}

/// S1.13, S2.08: QA always answers.
#[tokio::test]
async fn if_the_model_of_qa_fails_the_answer_is_assembled_without_it() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.tools, asked.results) {
        ("supervisor", _, 0) => Some(decide(&["look"], &[A, super::B], json!([]))),
        ("agent", _, _) if asked.agent == super::B => Some(Reply::status(400, "too long")),
        ("agent", 0, _) => Some(Reply::call("look_up", json!({ "key": "color" }))),
        ("agent", ..) => Some(Reply::text("It is teal.")),
        ("qa", ..) => Some(Reply::status(503, "overloaded")),
        _ => None,
    }))
    .await;
    let report = room.ask("Which color?").await;
    assert_done(&report);
    let answer = report.answer.unwrap();
    assert!(answer.contains("overloaded"), "{answer}");
    assert!(answer.contains("[1] mcp_agent_alpha: It is teal."), "{answer}");
    assert!(answer.contains("Failed:\n- mcp_agent_beta"), "{answer}");
}

async fn a_run_whose_supervisor_cannot_be_reached_fails_clearly_and_continues_later(
    fixture: &Fixture,
) {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = Arc::clone(&up);
    let room = Room::on(
        fixture,
        script(move |asked| match (asked.role, asked.results) {
            ("supervisor", 1) if !is_up.load(Ordering::SeqCst) => {
                Some(Reply::status(502, "upstream is down"))
            }
            ("supervisor", 0) => Some(decide(&["x"], &[A], json!([]))),
            ("agent", _) => Some(Reply::text("done")),
            _ => None,
        }),
    )
    .await;
    let report = room.ask("Go").await;
    assert_eq!(report.status, RunStatusView::Failed);
    let error = report.error.unwrap();
    assert!(
        error.contains("status 502: upstream is down") && error.contains(room.model.url()),
        "{error}"
    );
    assert_eq!(report.results.len(), 1, "what was done is kept");

    up.store(true, Ordering::SeqCst);
    assert_done(&room.resume().await);
    assert_eq!(room.requests(Role::Agent).len(), 1);
    assert_eq!(room.requests(Role::Supervisor).len(), 3);
}

/// A real model, asked with nothing but failures before it, made a door code up.
#[tokio::test]
async fn without_successful_work_no_model_writes_the_answer() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("supervisor", 0) => Some(decide(&["look"], &[A], json!([]))),
        ("agent", _) => Some(Reply::status(400, "no such model")),
        ("qa", _) => Some(Reply::text("The door code is 1234.")),
        _ => None,
    }))
    .await;
    let report = room.ask("What is the door code?").await;
    assert_nothing_worked(&report);
    let answer = report.answer.unwrap();
    assert!(answer.starts_with("The request could not be answered"), "{answer}");
    assert!(answer.contains("no such model") && !answer.contains("1234"), "{answer}");
    assert_eq!(room.requests(Role::Qa).len(), 0);
}

fn cut(text: &str) -> Reply {
    let message = json!({ "role": "assistant", "content": text });
    let body = json!({ "choices": [{ "message": message, "finish_reason": "length" }] });
    Reply::raw(body.to_string())
}

#[tokio::test]
async fn an_answer_that_was_cut_off_is_named_as_such() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.tools, asked.results) {
        ("supervisor", _, 0) => Some(decide(&["look"], &[A], json!([]))),
        ("agent", 0, _) => Some(Reply::call("look_up", json!({ "key": "color" }))),
        ("agent", ..) => Some(Reply::text("It is teal.")),
        ("qa", ..) => Some(cut("The transfer of 500 euros was")),
        _ => None,
    }))
    .await;
    let report = room.ask("Was it made?").await;
    assert_done(&report);
    assert_eq!(report.finish_reason, Some(FinishReason::Truncated));
    let answer = report.answer.unwrap();
    assert!(
        answer.starts_with("The transfer of 500 euros was\n\n[The answer was cut off"),
        "{answer}"
    );
}

#[tokio::test]
async fn an_agent_with_a_truncated_answer_is_asked_once_for_a_shorter_one() {
    let agents = |shorter: fn() -> Reply| {
        script(move |asked| match (asked.role, asked.tools, asked.results) {
            ("supervisor", _, 0) => Some(decide(&["look"], &[A], json!([]))),
            ("agent", 0, _) => Some(Reply::call("look_up", json!({ "key": "color" }))),
            ("agent", ..) if asked.text.contains("much shorter") => Some(shorter()),
            ("agent", ..) => Some(cut("It seems to be te")),
            _ => None,
        })
    };
    let room = Room::in_memory(agents(|| Reply::text("Teal."))).await;
    let report = room.ask("Which color?").await;
    assert_done(&report);
    assert_eq!(report.results[0].output, "Teal.");
    assert!(!room.agent_requests(A)[2].contains("It seems to be te"), "it would be repeated");

    let room = Room::in_memory(agents(|| cut("Te"))).await;
    let report = room.ask("Which color?").await;
    assert_nothing_worked(&report);
    assert_eq!(report.finish_reason, Some(FinishReason::Truncated));
    let error = report.results[0].error_message().unwrap();
    assert!(error.contains("cut off"), "{error}");
    let output = &report.results[0].output;
    assert!(output.contains("The color is teal."), "what its call gave is there: {output}");
}

/// DESIGN 5: what readers have of an answer is stored as it is, however it broke off.
#[tokio::test]
async fn an_answer_that_breaks_off_after_its_first_words_is_stored_as_cut() {
    const BEGUN: &str = "The transfer of 500 euros to Bo was made on the second of May, and it";
    let lost = || Reply { drop_connection: true, ..Reply::text(format!("{BEGUN} {BEGUN}")) };
    let refused = || {
        let piece = json!({ "choices": [{ "delta": { "content": BEGUN } }] });
        let error = json!({ "error": { "message": "upstream is gone", "code": 502 } });
        Reply::raw(format!("data: {piece}\n\ndata: {error}\n\n"))
    };
    for broken in [lost as fn() -> Reply, refused] {
        let room = Room::in_memory(script(move |asked| match (asked.role, asked.results) {
            ("supervisor", 0) => Some(decide(&["look"], &[A], json!([]))),
            ("agent", _) => Some(Reply::text("It is teal.")),
            ("qa", _) => Some(broken()),
            _ => None,
        }))
        .await;
        let report = room.ask("Was it made?").await;
        assert_done(&report);
        assert_eq!(report.finish_reason, Some(FinishReason::Truncated), "{report:#?}");
        let answer = report.answer.unwrap();
        assert!(answer.starts_with("The transfer of 500 euros"), "{answer}");
        assert!(answer.contains("\n\n[The answer was cut off here: "), "{answer}");
    }
}
