//! Plans: agents in parallel, chains, diamonds, and the same agent twice.

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Script};
use perihelion::runtime::RunReport;
use perihelion::swarm::{Request, ResultStatus};
use serde_json::json;

use super::{A, B, Room, assert_done, assert_nothing_worked, decide, script, task};
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(
    two_agents_work_in_parallel_and_qa_answers_with_citations,
    a_diamond_runs_in_stages
);

fn color_and_size() -> Script {
    script(|asked| match (asked.role, asked.agent, asked.tools, asked.results) {
        ("supervisor", _, _, 0) => Some(decide(
            &["look both up", "answer"],
            &[A, B],
            json!([task("t1", A, "Which color?", &[]), task("t2", B, "Which size?", &[])]),
        )),
        ("agent", A, 0, _) => Some(Reply::call("look_up", json!({ "key": "color" }))),
        ("agent", A, _, _) => Some(Reply::text("It is teal.")),
        ("agent", B, 0, _) => Some(Reply::call("look_up", json!({ "key": "size" }))),
        ("agent", B, _, _) => Some(Reply::text("It is 42.")),
        ("qa", ..) => Some(Reply::text("Teal [1], size 42 [2][7].")),
        _ => None,
    })
}

/// S1.02, S1.03, S1.06, S1.09, S1.13, S3.01
async fn two_agents_work_in_parallel_and_qa_answers_with_citations(fixture: &Fixture) {
    let room = Room::on(fixture, color_and_size()).await;
    let report = room.ask("Which color and size?").await;
    assert_done(&report);
    assert_eq!(report.answer.as_deref(), Some("Teal [1], size 42 [2]."), "[7] points nowhere");
    let outputs: Vec<_> =
        report.results.iter().map(|one| (one.agent.as_str(), one.output.as_str())).collect();
    assert_eq!(outputs, [(A, "It is teal."), (B, "It is 42.")]);
    assert!(report.results.iter().all(|one| one.reflection == "APPROVED" && one.attempts == 1));
    let citations: Vec<_> =
        report.citations.iter().map(|one| (one.number, one.source.as_str())).collect();
    assert_eq!(citations, [(1, "alpha.look_up"), (2, "beta.look_up")]);

    // One super-step ran both: input, preprocess, supervisor, the agents, supervisor, QA.
    let runtime = room.open().await;
    let before = runtime.runner().state(room.thread, Some(3)).await.unwrap();
    assert_eq!(before.next, [A, B]);
    let after = runtime.runner().state(room.thread, Some(4)).await.unwrap();
    assert_eq!((after.state.results.len(), after.next), (2, vec!["supervisor".to_owned()]));
    runtime.close().await;

    let state = room.state().await;
    let messages: Vec<_> = state.messages.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(messages, ["1.2.user", "1.4.1.1.t1", "1.4.1.1.t2", "1.6.qa"]);
    assert_eq!(state.plan, ["done: all"], "the plan is rewritten as results arrive");
    assert_eq!(room.requests(Role::Supervisor).len(), 2);
}

fn diamond() -> Script {
    script(|asked| match (asked.role, asked.results) {
        ("supervisor", 0) => Some(decide(
            &["a diamond"],
            &[A, B],
            json!([
                task("d", A, "task d", &["b", "c"]),
                task("b", B, "task b", &["a"]),
                task("c", A, "task c", &["a"]),
                task("a", A, "task a", &[]),
            ]),
        )),
        ("agent", _) => {
            let own = asked.text.split("<task>\ntask ").nth(1).map(|rest| &rest[..1]);
            Some(Reply::text(format!("output of {}", own.unwrap_or_default())))
        }
        _ => None,
    })
}

fn outputs(report: &RunReport) -> Vec<&str> {
    report.results.iter().map(|one| one.output.as_str()).collect()
}

/// S3.01: upstream outputs reach their dependents, and no model is asked between the stages.
async fn a_diamond_runs_in_stages(fixture: &Fixture) {
    let room = Room::on(fixture, diamond()).await;
    let report = room.ask("Go").await;
    assert_done(&report);
    assert_eq!(outputs(&report), ["output of a", "output of b", "output of c", "output of d"]);
    assert_eq!(room.requests(Role::Supervisor).len(), 2);
    let mut agents = room.agent_requests(A);
    let last = agents.pop().unwrap();
    let given = last.last_text();
    let given = &given
        [given.find("<dependency_outputs>").unwrap()..given.find("</dependency_outputs>").unwrap()];
    assert!(given.contains("output of b") && given.contains("output of c"), "{given}");
    assert!(!given.contains("output of a"), "{given}");
    assert!(!agents[0].contains("<dependency_outputs>\n"));
    // Results without a tool call are cited by their agent, so that every number leads somewhere.
    let cited: Vec<_> = report.citations.iter().map(|one| (one.number, &*one.source)).collect();
    assert_eq!(cited, [(1, A), (2, B), (3, A), (4, A)]);
}

#[tokio::test]
async fn the_same_agent_works_on_two_tasks_of_one_stage() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("supervisor", 0) => {
            let tasks = json!([task("x", A, "task x", &[]), task("y", A, "task y", &[])]);
            Some(decide(&["both"], &[A], tasks))
        }
        ("agent", _) if asked.tools > 0 => Some(Reply::text("found")),
        ("agent", _) => {
            let key = if asked.text.contains("<task>\ntask x") { "color" } else { "size" };
            Some(Reply::call("look_up", json!({ "key": key })))
        }
        _ => None,
    }))
    .await;
    let report = room.ask("Go").await;
    assert_done(&report);
    let done: Vec<_> = report.results.iter().map(|one| (&*one.id, &*one.task)).collect();
    assert_eq!(done, [("1.1.x", "task x"), ("1.1.y", "task y")]);
    let cited: Vec<_> =
        report.citations.iter().map(|one| (one.number, one.arguments["key"].clone())).collect();
    assert_eq!(cited, [(1, json!("color")), (2, json!("size"))]);
}

/// S2.11: A failed task hands back to the supervisor: what depends on it is not started.
#[tokio::test]
async fn a_failed_task_stops_the_plan_and_is_reported_to_the_supervisor() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.agent, asked.results) {
        ("supervisor", _, 0) => {
            let tasks = json!([task("t1", A, "first", &[]), task("t2", B, "second", &["t1"])]);
            Some(decide(&["a chain"], &[A, B], tasks))
        }
        ("agent", A, _) => Some(Reply::status(400, "context too long")),
        _ => None,
    }))
    .await;
    let report = room.ask("Go").await;
    assert_nothing_worked(&report);
    assert_eq!(report.results.len(), 1);
    assert_eq!(report.results[0].status, ResultStatus::Failed);
    assert!(report.citations.is_empty(), "a failure supports nothing");
    assert!(room.agent_requests(B).is_empty());
    let second = &room.requests(Role::Supervisor)[1];
    assert!(second.contains("not started, because 1.1.t1 failed: mcp_agent_beta (second)"));
    assert!(report.answer.unwrap().contains("context too long"));
}

/// S2.01: a disabled agent is neither on the menu nor routed to, and preferences reach the supervisor.
#[tokio::test]
async fn a_disabled_agent_is_refused_as_unknown_and_a_preferred_one_is_shown() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("supervisor", 0) if asked.text.contains("there is no agent named") => {
            Some(decide(&["other"], &[B], json!([])))
        }
        ("supervisor", 0) => Some(decide(&["one"], &[A], json!([]))),
        ("agent", _) => Some(Reply::text("done")),
        _ => None,
    }))
    .await;
    let report = room.ask_for(Request {
        question: "Go".into(),
        prefer_agents: vec!["BETA".into()],
        disable_agents: vec![A.into()],
        ..Request::default()
    });
    let report = report.await.unwrap();
    assert_done(&report);
    assert_eq!(report.results[0].agent, B);
    let first = &room.requests(Role::Supervisor)[0];
    assert!(!first.contains(A));
    assert!(first.contains("<entry key=\"preferred_agents\">mcp_agent_beta</entry>"));
    assert!(room.agent_requests(A).is_empty());
}

/// S1.09: a thread whose agent is gone is parked, and continues when it is back.
#[tokio::test]
async fn a_thread_whose_agent_vanished_is_parked_until_it_is_back() {
    let mut room = Room::in_memory(super::one_call("look_up", json!({ "key": "color" })))
        .await
        .with_alpha("default_tools_approval_mode = \"prompt\"");
    let report = room.ask("Go").await;
    assert_eq!(report.interrupts[0].kind, "approval");
    let only_beta = room.workshop("beta", "");
    let whole = std::mem::replace(&mut room.servers, only_beta);

    let runtime = room.open().await;
    let approve = perihelion::runtime::Answer::Approve { reason: None };
    runtime.answer(room.thread, None, approve).await.unwrap();
    let parked = runtime.resume(room.thread, runtime.run_options()).await.unwrap();
    runtime.close().await;
    let error = parked.error.unwrap();
    assert!(error.contains("the next node no longer exists: mcp_agent_alpha"), "{error}");
    let status = room.store.info(room.thread).await.unwrap().status;
    assert_eq!(status, perihelion::checkpoint::ThreadStatus::Parked);

    room.servers = whole;
    let report = room.resume().await;
    assert_done(&report);
    assert_eq!(report.results[0].output, "Found it.");
    room.assert_nothing_paid_twice("");
}

/// S3.02: what a task is about reaches its agent and its judge, and a plan that repeats the material is sent back.
#[tokio::test]
async fn an_agent_is_given_the_entities_of_its_task() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("supervisor", 0) => {
            let mut one = task("t1", A, "find the invoice", &[]);
            let many = if asked.text.contains("more than 16 entities") { 2 } else { 17 };
            let entity = |at: usize| json!({ "name": format!("n{at}"), "value": format!("v{at}") });
            one["entities"] = (0..many).map(entity).collect();
            Some(decide(&["one"], &[A], json!([one])))
        }
        ("agent", _) => Some(Reply::text("Found it.")),
        _ => None,
    }))
    .await;
    assert_done(&room.ask("Go").await);
    let prompt = |role: &str| {
        let requests = room.model.requests();
        let texts =
            requests.iter().filter(|request| request.role == role).map(|one| one.texts().concat());
        texts
            .filter(|text| text.contains("find the invoice\n\nIt is about:\n- n0: v0\n- n1: v1"))
            .count()
    };
    assert_eq!((prompt("agent"), prompt("reflector")), (1, 1));
}

/// S1.06: An agent is given what its task depends on once, though the session's last messages say it too; the bytes of all
/// prompts are printed by role.
#[tokio::test]
async fn dependencies_of_a_task_are_in_its_prompt_once() {
    const OUTPUT: &str = "A finding of forty words and more, ";
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("supervisor", 0) => {
            let ids = ["t1", "t2", "t3", "t4", "t5", "t6"];
            let tasks: Vec<_> = (0..ids.len())
                .map(|at| {
                    let before: Vec<&str> = ids[..at].iter().rev().take(2).copied().collect();
                    task(ids[at], if at % 2 == 0 { A } else { B }, &format!("do {at}"), &before)
                })
                .collect();
            Some(decide(&["six"], &[A, B], json!(tasks)))
        }
        ("agent", _) => {
            let own = asked.text.split_once("<task>\ndo ").map_or("?", |(_, rest)| &rest[..1]);
            Some(Reply::text(format!("{}number {own}.", OUTPUT.repeat(20))))
        }
        _ => None,
    }))
    .await;
    assert_done(&room.ask("Go").await);
    let mut bytes = std::collections::BTreeMap::<String, usize>::new();
    for request in room.model.requests() {
        *bytes.entry(request.role.clone()).or_default() += request.texts().concat().len();
    }
    eprintln!("prompt bytes by role: {bytes:?}");
    let agents = [room.agent_requests(A), room.agent_requests(B)].concat();
    assert_eq!(agents.len(), 6);
    for request in &agents {
        let text = request.texts().concat();
        for number in 0..6 {
            let output = format!("number {number}.");
            assert!(text.matches(&output).count() <= 1, "twice: {output}\n{text}");
        }
    }
}
