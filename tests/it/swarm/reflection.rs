//! Tri-state reflection: APPROVED, FIXED, REJECTED, and what follows (S1.07).

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Script};
use perihelion::swarm::ResultStatus;
use serde_json::json;

use super::{A, Room, assert_done, assert_nothing_worked, decide, script, verdict};

/// An agent that says `draft N`, and a reflector that says what `judge` makes of it.
fn drafts(judge: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Script {
    script(move |asked| match (asked.role, asked.results) {
        ("supervisor", 0) => Some(decide(&["write"], &[A], json!([]))),
        ("agent", _) => {
            // An output that rests on no call is not approved.
            if asked.tools == 0 {
                return Some(Reply::call("look_up", json!({ "key": "color" })));
            }
            let rejected = asked.text.matches("</reflection_feedback>").count();
            Some(Reply::text(format!("draft {}", rejected + 1)))
        }
        ("reflector", _) => Some(judge(&asked.text)),
        _ => None,
    })
}

/// S1.07
#[tokio::test]
async fn a_rejected_output_goes_back_with_the_feedback_and_is_approved_the_second_time() {
    let room = Room::in_memory(drafts(|text| {
        if text.contains("draft 2") {
            super::approved()
        } else {
            verdict("REJECTED", None, Some("Say <more>."))
        }
    }))
    .await;
    let report = room.ask("Write").await;
    assert_done(&report);
    let result = &report.results[0];
    assert_eq!((&*result.output, &*result.reflection, result.attempts), ("draft 2", "APPROVED", 2));
    let second = room.agent_requests(A).pop().unwrap();
    let texts = second.texts();
    assert_eq!(texts[texts.len() - 2], "draft 1");
    assert!(second.last_text().contains("Say &lt;more&gt;."), "{}", second.last_text());
}

/// S1.07
#[tokio::test]
async fn a_fixed_output_is_replaced() {
    let room = Room::in_memory(drafts(|_| verdict("FIXED", Some("a fair copy"), None))).await;
    let result = room.ask("Write").await.results.remove(0);
    assert_eq!(
        (&*result.output, &*result.reflection, result.attempts),
        ("a fair copy", "FIXED", 1)
    );
    assert_eq!(result.status, ResultStatus::Success);
}

/// S1.07: The bound: `max_reflections` = 2 gives three rounds; the last output is kept, marked as failed.
#[tokio::test]
async fn an_output_rejected_until_the_limit_is_stored_as_failed() {
    let room = Room::in_memory(drafts(|_| verdict("REJECTED", None, Some("Still wrong.")))).await;
    let report = room.ask("Write").await;
    assert_nothing_worked(&report);
    let result = &report.results[0];
    assert_eq!((&*result.output, &*result.reflection, result.attempts), ("draft 3", "REJECTED", 3));
    assert_eq!(result.status, ResultStatus::Failed);
    let error = result.error_message().unwrap();
    assert_eq!(error, "the output was rejected 3 times, last because: Still wrong.");
    assert_eq!(room.requests(Role::Reflector).len(), 3);
    let answer = report.answer.unwrap();
    assert!(answer.contains("rejected 3 times") && !answer.contains("draft 3"), "{answer}");
    assert_eq!(room.requests(Role::Qa).len(), 0, "a model would answer from nothing");
}

#[tokio::test]
async fn a_reflector_that_fails_leaves_the_output_standing_unverified() {
    let room = Room::in_memory(drafts(|_| Reply::status(500, "out of order"))).await;
    let result = room.ask("Write").await.results.remove(0);
    assert_eq!((&*result.output, &*result.reflection), ("draft 1", "UNVERIFIED"));
    assert_eq!(result.status, ResultStatus::Success);
}

/// A model that fails after a rejection costs the new draft, not the old one.
#[tokio::test]
async fn text_written_before_the_model_failed_is_preserved() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("supervisor", 0) => Some(decide(&["write"], &[A], json!([]))),
        ("agent", _) if asked.text.contains("</reflection_feedback>") => {
            Some(Reply::status(400, "no more"))
        }
        ("agent", _) => Some(Reply::text("draft 1")),
        ("reflector", _) => Some(verdict("REJECTED", None, Some("Again."))),
        _ => None,
    }))
    .await;
    let result = room.ask("Write").await.results.remove(0);
    assert_eq!((&*result.output, &*result.reflection, result.attempts), ("draft 1", "REJECTED", 2));
    assert!(result.error.unwrap().message.contains("no more"));
}

/// Nothing that was found or given supports such an output, whatever the reflector says.
#[tokio::test]
async fn an_output_without_a_call_and_without_material_is_not_approved() {
    for status in ["APPROVED", "FIXED"] {
        let room = Room::in_memory(script(move |asked| match (asked.role, asked.results) {
            ("supervisor", 0) => Some(decide(&["look"], &[A], json!([]))),
            ("agent", _) => Some(Reply::text("The door code is 1234.")),
            ("reflector", _) => Some(verdict(status, Some("The door code is 4321."), None)),
            _ => None,
        }))
        .await;
        let result = room.ask("What is the door code?").await.results.remove(0);
        assert_eq!(result.reflection, "UNVERIFIED", "{status}");
        assert_eq!(result.output, "The door code is 1234.");
    }
}
