//! Planning in two stages: candidates by words, refined by the supervisor, and standing where it fails (S2.03, S2.08).

use perihelion::llm::Role;
use perihelion::llm::scripted::Reply;
use perihelion::runtime::{Answer, RunStatusView};
use perihelion::swarm::{FinishReason, Request};
use serde_json::json;

use super::{A, B, Room, assert_done, assert_nothing_worked, decide, script};

const QUESTION: &str = "What color does the workshop beta know?";

fn asking(prefer: &[&str]) -> Request {
    let prefer_agents = prefer.iter().map(|name| (*name).to_owned()).collect();
    Request { question: QUESTION.into(), prefer_agents, ..Request::default() }
}

/// S2.03
#[tokio::test]
async fn the_supervisor_sees_candidates_by_keyword_search_with_preferred_ones_first() {
    for (prefer, wanted) in [(&[][..], [B, A]), (&[A][..], [A, B])] {
        let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
            ("supervisor", 0) => Some(decide(&["look"], &[B], json!([]))),
            ("agent", _) => Some(Reply::text("Teal.")),
            _ => None,
        }))
        .await;
        let report = room.ask_for(asking(prefer)).await.unwrap();
        assert_done(&report);
        let planner = report.planner.unwrap();
        assert_eq!(planner.candidates, wanted);
        assert_eq!((planner.order, planner.by_words), (vec![B.to_owned()], false));
        let shown = format!("<candidates>\n{}\n</candidates>", wanted.join(", "));
        assert!(room.requests(Role::Supervisor)[0].contains(&shown));
    }
}

/// S2.03
#[tokio::test]
async fn if_the_model_fails_the_candidates_remain_with_less_confidence() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("supervisor", 0) => Some(Reply::status(503, "overloaded")),
        ("agent", _) if asked.agent == B => Some(Reply::text("Teal.")),
        ("agent", _) => Some(Reply::status(400, "no")),
        _ => None,
    }))
    .await;
    let report = room.ask_for(asking(&[A])).await.unwrap();
    assert_done(&report);
    let planner = report.planner.as_ref().unwrap();
    assert_eq!(planner.confidence, Some(0.4));
    assert_eq!(planner.order, [A, B]);
    assert!(planner.by_words && planner.rationale.contains("overloaded"), "{planner:?}");
    assert!(!planner.guardrails.is_empty());
    let outputs: Vec<&str> = report.results.iter().map(|one| one.output.as_str()).collect();
    assert_eq!(outputs, ["", "Teal."]);
    assert!(report.metadata.partial, "one of the two failed");
}

/// S2.03: what was found is answered from, and without anything found the run fails as clearly as before.
#[tokio::test]
async fn a_model_that_keeps_failing_ends_the_run_with_the_results_of_the_candidates() {
    for works in [true, false] {
        let room = Room::in_memory(script(move |asked| match asked.role {
            "supervisor" => Some(Reply::status(503, "overloaded")),
            "agent" if works => Some(Reply::text("Teal.")),
            "agent" => Some(Reply::status(400, "no")),
            _ => None,
        }))
        .await;
        let report = room.ask_for(asking(&[])).await.unwrap();
        assert_eq!(report.finish_reason, Some(FinishReason::ModelFailed));
        if works {
            assert_done(&report);
            assert!(report.metadata.partial);
        } else {
            assert_eq!(report.status, RunStatusView::Failed);
            assert!(report.error.unwrap().contains("overloaded"));
        }
    }
}

/// S2.03: words that fit nobody leave nobody to stand.
#[tokio::test]
async fn without_a_matching_agent_a_failure_of_the_model_stops_the_run() {
    let room = Room::in_memory(script(|asked| match asked.role {
        "supervisor" => Some(Reply::status(503, "overloaded")),
        _ => None,
    }))
    .await;
    let report = room.ask("Hm?").await;
    assert_eq!(report.status, RunStatusView::Failed);
    assert!(room.requests(Role::Agent).is_empty());
}

/// S2.08
#[tokio::test]
async fn the_answer_follows_the_rules_of_style_and_is_marked_as_partial_when_an_agent_failed() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("supervisor", 0) => Some(decide(&["look"], &[A, B], json!([]))),
        ("agent", _) if asked.agent == A => Some(Reply::text("Teal.")),
        ("agent", _) => Some(Reply::status(400, "no\nat /srv/secret/place/of/it.rs")),
        _ => None,
    }))
    .await
    .with_env("PERIHELION_PROMPTS_STYLE", "Short, in <euros>.");
    let report = room.ask("Which color?").await;
    assert_done(&report);
    assert!(report.metadata.partial);
    let qa = &room.requests(Role::Qa)[0];
    assert!(qa.contains("<style_rules>\nShort, in &lt;euros&gt;.\n</style_rules>"));
    assert!(qa.contains("status=\"failed\""), "failed results are shown: {}", qa.last_text());
    let error = report.results[1].error.as_ref().unwrap();
    assert!(!error.message.contains("/srv/secret") && !error.message.contains('\n'), "{error:?}");
    let whole = error.details.as_ref().unwrap()["whole"].as_str().unwrap();
    assert!(whole.contains("/srv/secret/place/of/it.rs"), "{whole}");
}

/// S3.09: the user is not asked for ever.
#[tokio::test]
async fn one_request_puts_at_most_five_questions() {
    let room = Room::in_memory(script(|asked| match asked.role {
        "supervisor" => Some(Reply::json(json!({
            "thought_process": "t", "plan": [], "selected_agents": [], "tasks": [],
            "clarification": "Which one?", "confidence": null,
        }))),
        _ => None,
    }))
    .await;
    let mut report = room.ask("Hm?").await;
    for _ in 0..5 {
        assert_eq!(report.status, RunStatusView::Interrupted, "{report:#?}");
        report = room.answer(Answer::Message("That one.".into())).await;
    }
    assert_nothing_worked(&report);
    let last = room.requests(Role::Supervisor).pop().unwrap();
    assert!(last.contains("the user was asked 5 questions"), "{}", last.last_text());
}
