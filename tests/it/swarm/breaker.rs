//! The circuit breaker and the budgets: every run ends in an answer that says why (S1.05).

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Script};
use perihelion::runtime::{RunReport, RunStatusView};
use perihelion::swarm::{FinishReason, Request};
use serde_json::json;

use super::{A, B, Room, assert_done, assert_nothing_worked, decide, script};

/// A supervisor that never has enough and plans something else each time, and an agent whose output is `output`.
fn insatiable(output: impl Fn() -> Reply + Send + Sync + 'static) -> Script {
    planning(|round| format!("try {round}"), output)
}

fn planning(
    plan: impl Fn(usize) -> String + Send + Sync + 'static,
    output: impl Fn() -> Reply + Send + Sync + 'static,
) -> Script {
    script(move |asked| match asked.role {
        "supervisor" => Some(decide(&[&plan(asked.results)], &[A], json!([]))),
        "agent" => Some(output()),
        _ => None,
    })
}

fn reason_given_to_qa(room: &Room) -> String {
    let qa = room.requests(Role::Qa).remove(0);
    let text = qa.last_text().to_owned();
    text.split("<reason>\n").nth(1).unwrap().split("\n</reason>").next().unwrap().to_owned()
}

/// S1.05
#[tokio::test]
async fn the_same_routing_without_progress_trips_at_two_and_qa_receives_the_reason() {
    let script = planning(|_| "try".into(), || Reply::status(400, "no such model"));
    let room = Room::in_memory(script).await;
    let report = room.ask("Go").await;
    assert_eq!(report.status, RunStatusView::Failed, "nothing worked: {report:#?}");
    assert_eq!(report.finish_reason, Some(FinishReason::NoProgress));
    // The third identical decision is cut off before its agents start.
    assert_eq!(report.results.len(), 2);
    assert_eq!(room.requests(Role::Supervisor).len(), 3);
    let why = "the same agents were chosen 3 times in a row without progress: mcp_agent_alpha";
    let answer = report.answer.unwrap();
    assert!(answer.contains(why), "{answer}");
    let state = room.state().await;
    assert_eq!(state.routing.retry_count, 2);
    assert_eq!(state.tasks.len(), 2, "tasks that were never handed out are not on record");
}

#[tokio::test]
async fn another_agent_or_a_new_plan_is_progress() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("supervisor", round @ 0..4) => {
            let plan = format!("try {round}");
            Some(decide(&[&plan], &[if round == 3 { B } else { A }], json!([])))
        }
        ("agent", _) => Some(Reply::status(400, "no")),
        _ => None,
    }))
    .await;
    let report = room.ask("Go").await;
    assert_eq!(report.status, RunStatusView::Failed, "nothing worked: {report:#?}");
    assert_eq!(report.results.len(), 4, "each new plan is another chance");
    assert!(
        room.state().await.finish_reason.is_none(),
        "the supervisor judged the work to be done"
    );
}

/// Runs an insatiable supervisor with an agent that always succeeds, under a limit.
async fn under(limit: &str, value: &str) -> (Room, RunReport) {
    let room = Room::in_memory(insatiable(|| Reply::text("more").usage(1_000, 100))).await;
    let room = room.with_env(limit, value);
    let report = room.ask("Go").await;
    assert_done(&report);
    assert!(report.answer.is_some());
    (room, report)
}

#[tokio::test]
async fn the_step_limit_leads_to_qa() {
    let (room, report) = under("PERIHELION_LIMITS_MAX_STEPS", "6").await;
    assert_eq!(reason_given_to_qa(&room), "the limit of 6 steps was reached");
    assert_eq!(report.results.len(), 3);
}

/// S1.05
#[tokio::test]
async fn the_token_budget_leads_to_qa() {
    let (room, report) = under("PERIHELION_LIMITS_MAX_TOKENS", "20000").await;
    assert_eq!(reason_given_to_qa(&room), "the budget of 20000 tokens was spent");
    assert!(report.usage.input_tokens + report.usage.output_tokens >= 20_000);
}

#[tokio::test]
async fn the_cost_budget_leads_to_qa_and_the_cost_is_reported() {
    let room = Room::in_memory(insatiable(|| Reply::text("more").usage(1_000_000, 100_000))).await;
    let settings = "[limits]\nmax_cost_usd = 3.0\n\
                    [models.prices.\"big\"]\ninput_per_mtok = 1.0\noutput_per_mtok = 10.0\n";
    std::fs::write(room.directory.path().join("perihelion.toml"), settings).unwrap();
    let report = room.ask("Go").await;
    assert_done(&report);
    assert_eq!(reason_given_to_qa(&room), "the budget of 3 USD was spent");
    // Two rounds of 2 USD for the agent; the estimates for the other roles are far below a cent each.
    let cost = report.cost_usd.unwrap();
    assert!((4.0..4.1).contains(&cost), "{cost}");
    assert_eq!(report.results.len(), 2);
}

#[tokio::test]
async fn the_time_limit_leads_to_qa_and_each_run_has_its_own() {
    let room = Room::in_memory(insatiable(|| Reply::text("more").delay_ms(400)))
        .await
        .with_env("PERIHELION_LIMITS_DEADLINE_SEC", "1");
    let report = room.ask("Go").await;
    assert_done(&report);
    assert_eq!(reason_given_to_qa(&room), "the time limit of 1 s was reached");
    // What the first run took is none of the second's: its agents work as before.
    let again = room.ask("Continue").await;
    assert_done(&again);
    assert!(!again.results.is_empty(), "it had no time of its own: {again:#?}");
    assert_eq!(reason_given_to_qa(&room), "the time limit of 1 s was reached");
    assert_eq!(room.requests(Role::Qa).len(), 2);
}

/// An agent stops at the budget as well, not only the supervisor after it.
#[tokio::test]
async fn an_agent_that_would_never_end_stops_at_the_budget() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("supervisor", 0) => Some(decide(&["try"], &[A], json!([])).usage(10, 10)),
        ("agent", _) => {
            let key = format!("missing {}", asked.tools);
            Some(Reply::call("look_up", json!({ "key": key })).usage(1_000, 10))
        }
        _ => None,
    }))
    .await
    .with_env("PERIHELION_LIMITS_MAX_TOKENS", "3000");
    let report = room.ask("Go").await;
    assert_nothing_worked(&report);
    let error = report.results[0].error_message().unwrap();
    assert_eq!(error, "the budget of 3000 tokens was spent");
    assert_eq!(room.agent_requests(A).len(), 3);
    assert_eq!(room.requests(Role::Supervisor).len(), 1);
}

/// S3.02: what was found before is handed back, and the answer has it.
#[tokio::test]
async fn an_agent_that_is_cut_off_returns_its_earlier_findings() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.tools) {
        ("supervisor", _) if asked.results == 0 => {
            Some(decide(&["try"], &[A], json!([])).usage(10, 10))
        }
        ("agent", 0) => Some(Reply::call("look_up", json!({ "key": "color" })).usage(1_000, 10)),
        ("agent", calls) => {
            Some(Reply::call("look_up", json!({ "key": calls.to_string() })).usage(1_000, 10))
        }
        _ => None,
    }))
    .await
    .with_env("PERIHELION_LIMITS_MAX_TOKENS", "1500");
    let report = room.ask("Go").await;
    let result = &report.results[0];
    assert_eq!(result.error_message(), Some("the budget of 1500 tokens was spent"));
    assert!(result.output.contains("alpha.look_up: The color is teal."), "{}", result.output);
    assert!(room.requests(Role::Qa)[0].contains("The color is teal."));
}

/// S1.05: calls of all agents together are bounded; what is left is divided, shown, and the rest is answered.
#[tokio::test]
async fn agents_of_one_stage_share_the_tool_calls_that_are_left() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.tools) {
        ("supervisor", _) => Some(decide(&[&format!("try {}", asked.results)], &[A, B], json!([]))),
        ("agent", calls @ 0..5) => {
            Some(Reply::call("look_up", json!({ "key": format!("key {calls}") })))
        }
        ("agent", _) => Some(Reply::text("enough")),
        _ => None,
    }))
    .await
    .with_env("PERIHELION_LIMITS_MAX_TOOL_CALLS", "5");
    let report = room.ask("Go").await;
    assert_eq!(report.finish_reason, Some(FinishReason::Limit), "{report:#?}");
    let answer = report.answer.as_deref().unwrap();
    assert!(answer.contains("the budget of 5 tool calls was spent"), "{answer}");
    let calls: Vec<usize> = report.results.iter().map(|one| one.tools.len()).collect();
    assert_eq!(calls, [3, 2], "five for two");
    let supervisor = room.requests(Role::Supervisor).remove(0);
    assert!(supervisor.contains("- tool calls: 5 of 5 left"), "{}", supervisor.last_text());
}

/// What was planned and never started is said as well.
#[tokio::test]
async fn a_plan_cut_off_by_a_limit_names_its_unstarted_tasks() {
    let room = Room::in_memory(script(|asked| match asked.role {
        "supervisor" => Some(decide(
            &["chain"],
            &[A, B],
            json!([super::task("a", A, "first", &[]), super::task("b", B, "second", &["a"])]),
        )),
        "agent" => Some(Reply::text("done")),
        _ => None,
    }))
    .await
    .with_env("PERIHELION_LIMITS_MAX_STEPS", "3");
    let request = Request { question: "Go".into(), ..Request::default() };
    assert_done(&room.ask_for(request).await.unwrap());
    let qa = &room.requests(Role::Qa)[0];
    assert!(qa.contains(
        "not started, because the limit of 3 steps was reached: mcp_agent_beta (second)"
    ));
}

/// S1.05, X3: a turn keeps the limits with which it began, so a replay under others commits the same.
#[tokio::test]
async fn a_replay_under_other_limits_is_identical() {
    const OTHERS: [(&str, &str); 7] = [
        ("PERIHELION_LIMITS_MAX_STEPS", "9"),
        ("PERIHELION_LIMITS_DEADLINE_SEC", "7"),
        ("PERIHELION_LIMITS_MAX_TOKENS", "100"),
        ("PERIHELION_LIMITS_MAX_TOOL_CALLS_PER_TASK", "1"),
        ("PERIHELION_LIMITS_MAX_REFLECTIONS", "0"),
        ("PERIHELION_LIMITS_RESULT_BYTES", "1024"),
        ("PERIHELION_LIMITS_BREAKER_RETRIES", "1"),
    ];
    let mut room =
        Room::in_memory(script(|asked| match (asked.role, asked.tools, asked.results) {
            ("supervisor", _, results @ 0..2) => {
                Some(decide(&[&format!("try {results}")], &[A], json!([])))
            }
            ("agent", calls @ 0..2, _) => {
                Some(Reply::call("look_up", json!({ "key": format!("key {calls}") })))
            }
            ("agent", _, _) => Some(Reply::text("Found it.")),
            _ => None,
        }))
        .await
        .with_env("PERIHELION_LIMITS_MAX_STEPS", "40");
    assert_done(&room.ask("Go").await);
    for (name, value) in OTHERS {
        room = room.with_env(name, value);
        let report = room.replay().await;
        assert!(report.divergence.is_none(), "under {name} = {value}: {report:#?}");
    }
}

/// S1.05: an answer that is not written in time is put together by rule, within a second of the deadline.
#[tokio::test]
async fn an_answer_does_not_outlast_the_deadline() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("supervisor", 0) => Some(decide(&["look"], &[A], json!([]))),
        ("agent", _) => Some(Reply::text("It is 42.")),
        ("qa", _) => Some(Reply::text("Too late.").delay_ms(3_600_000)),
        _ => None,
    }))
    .await
    .with_env("PERIHELION_LIMITS_DEADLINE_SEC", "1");
    let report = room.ask("Go").await;
    let answer = report.answer.unwrap();
    let why = "the time limit of 1 s was reached before the model had answered";
    assert!(answer.contains(why), "{answer}");
}
