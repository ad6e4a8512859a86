//! People: clarifications and approvals, each asked once and answered once.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Script};
use perihelion::runtime::{Answer, RunReport, RunStatusView};
use serde_json::json;

use super::{A, B, Room, assert_done, decide, script};
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(
    a_clarification_waits_and_its_answer_is_part_of_the_history,
    an_approved_call_is_made_once_and_a_denied_one_never
);

fn unsure() -> Script {
    script(|asked| match (asked.role, asked.results) {
        ("supervisor", 0) if asked.text.contains("The green &lt;one&gt;.") => {
            Some(decide(&["look"], &[A], json!([])))
        }
        ("supervisor", 0) => Some(Reply::json(json!({
            "thought_process": "Two of them.", "plan": ["ask"], "selected_agents": [], "tasks": [],
            "clarification": "Which one?",
        }))),
        ("agent", _) => Some(Reply::text("done")),
        _ => None,
    })
}

async fn a_clarification_waits_and_its_answer_is_part_of_the_history(fixture: &Fixture) {
    let room = Room::on(fixture, unsure()).await;
    let report = room.ask("How big is it?").await;
    assert_eq!(report.status, RunStatusView::Interrupted);
    let [open] = report.interrupts.as_slice() else { panic!("{report:#?}") };
    assert_eq!((&*open.kind, &*open.agent), ("clarification", "supervisor"));
    assert_eq!(open.payload["question"], "Which one?");
    assert_eq!(report.answer, None);

    // A resume without an answer asks the same question and pays nothing.
    let again = room.resume().await;
    assert_eq!(again.interrupts, report.interrupts);
    assert_eq!(room.requests(Role::Supervisor).len(), 1);

    let report = room.answer(Answer::Message("The green <one>.".into())).await;
    assert_done(&report);
    room.assert_nothing_paid_twice("");
    let second = &room.requests(Role::Supervisor)[1];
    let history = second.last_text().split("</session_history>").next().unwrap().to_owned();
    assert!(
        history.contains("<message role=\"assistant\" name=\"supervisor\">\nWhich one?"),
        "{history}"
    );
    assert!(history.contains("<message role=\"user\">\nThe green &lt;one&gt;."), "{history}");
}

/// The menu may change while a thread waits for days: the question and its answer stay.
#[tokio::test]
async fn a_clarification_outlives_a_change_of_the_servers() {
    let mut room = Room::in_memory(unsure()).await;
    let open = room.ask("How big is it?").await.interrupts;
    room.servers = room.workshop("alpha", "") + &room.workshop("gamma", "");
    let report = room.answer(Answer::Message("The green <one>.".into())).await;
    assert_done(&report);
    assert_eq!(open.len(), 1);
    assert_eq!(room.requests(Role::Supervisor).len(), 3, "first, after the answer, and to finish");
    assert!(room.requests(Role::Supervisor)[1].contains("mcp_agent_gamma"));
}

fn writes() -> Script {
    script(|asked| match (asked.role, asked.agent, asked.tools, asked.results) {
        ("supervisor", _, _, 0) => Some(decide(&["write"], &[A, B], json!([]))),
        ("agent", A, 0, _) => Some(Reply::call("append", json!({ "line": "hello" }))),
        ("agent", A, ..) => Some(Reply::text("Written, or not.")),
        ("agent", B, ..) => Some(Reply::text("Beside it.")),
        _ => None,
    })
}

async fn waiting(fixture: &Fixture) -> (Room, RunReport) {
    let room = Room::on(fixture, writes()).await;
    let room = room.with_alpha("tools.append.approval_mode = \"prompt\"");
    let report = room.ask("Write").await;
    assert_eq!(report.status, RunStatusView::Interrupted, "{report:#?}");
    assert!(room.log("alpha").is_empty());
    (room, report)
}

/// S3.09
async fn an_approved_call_is_made_once_and_a_denied_one_never(fixture: &Fixture) {
    let (room, report) = waiting(fixture).await;
    let [open] = report.interrupts.as_slice() else { panic!("{report:#?}") };
    assert_eq!((&*open.kind, &*open.agent), ("approval", A));
    assert_eq!(open.payload["tool"], "append");
    assert_eq!(open.payload["arguments"], json!({ "line": "hello" }));
    // The other agent of the stage did not wait.
    assert_eq!(room.agent_requests(B).len(), 1);
    let report = room.answer(Answer::Approve { reason: None }).await;
    assert_done(&report);
    assert_eq!(room.log("alpha"), ["hello"]);
    assert_eq!(room.agent_requests(B).len(), 1);
    room.assert_nothing_paid_twice("");

    let (room, _) = waiting(fixture).await;
    // What could not be heeded is not taken.
    let runtime = room.open().await;
    let altered = json!({ "decision": "approve", "time": "later" });
    let refused = runtime.answer(room.thread, None, Answer::Value(altered)).await.unwrap_err();
    assert!(refused.to_string().contains("but not: time"), "{refused}");
    room.close(runtime).await;
    let report = room.answer(Answer::Deny { reason: Some("not today".into()) }).await;
    assert_done(&report);
    assert!(room.log("alpha").is_empty());
    let prompt = room.agent_requests(A)[1].last_text().to_owned();
    assert!(prompt.contains("a person denied this call: not today"), "{prompt}");
    assert!(report.results[0].tools[0].is_error);
}
