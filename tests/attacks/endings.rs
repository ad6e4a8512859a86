//! Runs that end early say so: in JSON, in the run's row, on the terminal, and by the exit code (S1.05).

use perihelion::llm::scripted::{RecordedRequest, Reply, Script};
use serde_json::{Value, json};

use crate::world::{Ended, World, clarify, select};

const FILES: &str = "mcp_agent_files";
const NOTES: &str = "mcp_agent_notes";

/// A script by one function; the reflector approves, QA answers.
fn script(say: impl Fn(&RecordedRequest) -> Option<Reply> + Send + Sync + 'static) -> Script {
    Script::new().respond_with(move |request| {
        say(request).or_else(|| match request.role.as_str() {
            "reflector" => Some(Reply::json(
                json!({ "status": "APPROVED", "refined_output": null, "feedback": null }),
            )),
            "qa" => Some(Reply::text("What there is.")),
            _ => None,
        })
    })
}

/// How often the model was asked in a role.
fn asked(world: &World, role: &str) -> usize {
    world.model.requests().iter().filter(|request| request.role == role).count()
}

/// Returns how many results a supervisor is shown.
fn results(request: &RecordedRequest) -> usize {
    request.texts().join("\n").matches("<result number=").count()
}

/// Returns the newest run's row.
async fn run_row(world: &World, report: &Value) -> Value {
    let thread = report["thread_id"].as_str().unwrap();
    let shown = world.run(&["threads", "show", thread, "--json"]).await.code(0).json();
    shown["runs"].as_array().unwrap().last().unwrap().clone()
}

/// Asks with `--json`, and checks status, reason and exit code, in the report and in the run's row.
async fn ends(world: &World, code: i32, status: &str, reason: &str) -> (Value, Ended) {
    let run = world.run(&["run", "Go", "--json"]).await.code(code);
    let report = run.json();
    let ended = (&report["status"], &report["finish_reason"]);
    assert_eq!(ended, (&json!(status), &json!(reason)), "{report}\n{}", run.stderr);
    let row = run_row(world, &report).await;
    assert_eq!((&row["status"], &row["finish_reason"]), (&json!(status), &json!(reason)), "{row}");
    (report, run)
}

/// S1.05: 32 rounds of the same approved output, in an earlier version.
#[tokio::test]
async fn the_same_agent_with_the_same_approved_output_is_stopped_as_no_progress() {
    let say = |request: &RecordedRequest| match request.role.as_str() {
        "supervisor" => Some(select(&[FILES])),
        "agent" => Some(Reply::text(format!("  It is 42.{}", "\n".repeat(results(request) % 3)))),
        _ => None,
    };
    let world = World::new(script(say)).await;
    let (report, run) = ends(&world, 0, "done", "no_progress").await;
    assert_eq!(report["answer"], "What there is.");
    assert_eq!(asked(&world, "supervisor"), 4);
    run.says("warning: the run ended early (no_progress): the same agents were chosen 3 times");
}

/// S1.05
#[tokio::test]
async fn two_alternating_agents_without_new_results_are_stopped() {
    let say = |request: &RecordedRequest| match request.role.as_str() {
        "supervisor" => Some(select(&[[FILES, NOTES][results(request) % 2]])),
        "agent" => Some(Reply::text(format!("By {}", request.agent.as_deref().unwrap_or("?")))),
        _ => None,
    };
    let world = World::new(script(say)).await;
    let (_, run) = ends(&world, 0, "done", "no_progress").await;
    assert_eq!(asked(&world, "supervisor"), 6);
    run.says("the same choices were repeated without progress: mcp_agent_files; mcp_agent_notes");
}

/// S1.05
#[tokio::test]
async fn new_outputs_count_as_progress_until_the_limit_which_is_reported() {
    let say = |request: &RecordedRequest| match request.role.as_str() {
        "supervisor" => Some(select(&[FILES])),
        "agent" => Some(Reply::text(format!("Part {}", uuid::Uuid::new_v4()))),
        _ => None,
    };
    let mut world = World::new(script(say)).await;
    world.set("PERIHELION_LIMITS_MAX_STEPS", "12");
    let (_, run) = ends(&world, 0, "done", "limit").await;
    run.says("warning: the run ended early (limit): the limit of 12 steps was reached");
}

#[tokio::test]
async fn a_supervisor_that_talks_nonsense_fails_the_run() {
    let say = |request: &RecordedRequest| match request.role.as_str() {
        "supervisor" => Some(Reply::text("Colourless green ideas sleep furiously.")),
        _ => None,
    };
    let world = World::new(script(say)).await;
    let (report, run) = ends(&world, 1, "failed", "model_failed").await;
    let answer = report["answer"].as_str().unwrap();
    assert!(answer.contains("none of the work succeeded"), "no model invents an answer: {answer}");
    run.says("error[cli.run-failed]: no task succeeded: no usable decision could be made");
}

#[tokio::test]
async fn a_run_whose_only_agent_failed_is_failed() {
    let say = |request: &RecordedRequest| match (request.role.as_str(), results(request)) {
        ("supervisor", 0) => Some(select(&[FILES])),
        ("supervisor", _) => Some(select(&["qa"])),
        ("agent", _) => Some(Reply::status(400, "no such model")),
        _ => None,
    };
    let world = World::new(script(say)).await;
    let (_, run) = ends(&world, 1, "failed", "model_failed").await;
    run.says("no task succeeded: mcp_agent_files:").says("no such model");
}

#[tokio::test]
async fn an_answer_next_to_a_failed_task_is_given_with_a_warning() {
    let say = |request: &RecordedRequest| match (request.role.as_str(), results(request)) {
        ("supervisor", 0) => Some(select(&[FILES, NOTES])),
        ("supervisor", _) => Some(select(&["qa"])),
        ("agent", _) if request.agent.as_deref() == Some(NOTES) => Some(Reply::status(400, "no")),
        ("agent", _) => Some(Reply::text("It is 42.")),
        _ => None,
    };
    let world = World::new(script(say)).await;
    let (_, run) = ends(&world, 0, "done", "answered").await;
    run.says("warning: a task failed: mcp_agent_notes");
}

#[tokio::test]
async fn an_answer_written_without_the_model_is_marked() {
    let say = |request: &RecordedRequest| match (request.role.as_str(), results(request)) {
        ("supervisor", 0) => Some(select(&[FILES])),
        ("supervisor", _) => Some(select(&["qa"])),
        ("agent", _) => Some(Reply::text("It is 42.")),
        ("qa", _) => Some(Reply::status(400, "no")),
        _ => None,
    };
    let world = World::new(script(say)).await;
    let (report, run) = ends(&world, 0, "done", "model_failed").await;
    assert!(report["answer"].as_str().unwrap().contains("It is 42."));
    run.says("warning: the run ended early (model_failed)");
}

#[tokio::test]
async fn without_agents_the_reason_is_no_agents() {
    let say = |request: &RecordedRequest| match request.role.as_str() {
        "supervisor" => Some(select(&[FILES])),
        _ => None,
    };
    let world = World::new(script(say)).await;
    world.write("mcp-servers.toml", "");
    ends(&world, 1, "failed", "no_agents").await;
}

#[tokio::test]
async fn an_endpoint_that_refuses_the_supervisor_fails_the_run_as_model_failed() {
    let world = World::new(script(|_| Some(Reply::status(400, "no")))).await;
    ends(&world, 1, "failed", "model_failed").await;
}

#[tokio::test]
async fn a_question_to_the_user_is_a_distinct_end_reason() {
    let world = World::new(script(|_| Some(clarify("Which year?")))).await;
    ends(&world, 3, "interrupted", "clarification").await;
}

/// The model would answer after an hour.
fn late() -> Reply {
    Reply::text("Too late.").delay_ms(3_600_000)
}

/// S1.05
#[tokio::test]
async fn the_time_limit_cuts_a_supervisor_that_does_not_answer() {
    let say = |request: &RecordedRequest| (request.role == "supervisor").then(late);
    let mut world = World::new(script(say)).await;
    world.set("PERIHELION_LIMITS_DEADLINE_SEC", "1");
    let (report, run) = ends(&world, 1, "failed", "limit").await;
    run.says("no task succeeded: the time limit of 1 s was reached");
    // A replay decides as the run did: what it reads back says that the time was up.
    world.run(&["replay", report["thread_id"].as_str().unwrap()]).await.code(0);
}

/// S1.05
#[tokio::test]
async fn the_time_limit_cuts_an_agent_and_a_reflector_that_do_not_answer() {
    for silent in ["agent", "reflector"] {
        let say = move |request: &RecordedRequest| match request.role.as_str() {
            role if role == silent => Some(late()),
            "supervisor" => Some(select(&[FILES])),
            "agent" => Some(Reply::text("It is 42.")),
            _ => None,
        };
        let mut world = World::new(script(say)).await;
        world.set("PERIHELION_LIMITS_DEADLINE_SEC", "1");
        let (code, status) = if silent == "agent" { (1, "failed") } else { (0, "done") };
        let (report, _) = ends(&world, code, status, "limit").await;
        let written_by_rule = "The request could not be answered";
        let expected = if silent == "agent" { written_by_rule } else { "What there is." };
        assert!(report["answer"].as_str().unwrap().starts_with(expected), "{report:#}");
    }
}
