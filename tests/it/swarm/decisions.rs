//! Decisions that cannot be accepted are fed back, and counted (S1.04).

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Script};
use serde_json::{Value, json};

use super::{A, B, Room, assert_done, assert_nothing_worked, decide, script, task};

/// A supervisor that answers `first` once, and well after it was told `complaint`.
fn corrected(first: Reply, complaint: &'static str) -> Script {
    script(move |asked| match (asked.role, asked.results) {
        ("supervisor", 0) if asked.text.contains(complaint) => {
            Some(decide(&["better"], &[A], json!([])))
        }
        ("supervisor", 0) => Some(first.clone()),
        ("agent", _) => Some(Reply::text("done")),
        _ => None,
    })
}

async fn is_fed_back(first: Reply, complaint: &'static str) {
    let room = Room::in_memory(corrected(first, complaint)).await;
    let report = room.ask("Go").await;
    assert_done(&report);
    assert_eq!(report.results.len(), 1);
    let requests = room.requests(Role::Supervisor);
    assert_eq!(requests.len(), 3);
    assert!(requests[1].contains(complaint), "{}", requests[1].last_text());
    assert!(!requests[2].contains(complaint), "a good decision clears the errors");
}

/// S1.04
#[tokio::test]
async fn an_unknown_agent_an_empty_choice_and_a_cycle_reach_the_second_request() {
    let unknown = decide(&["x"], &["mcp_agent_alhpa"], json!([]));
    is_fed_back(unknown, "there is no agent named mcp_agent_alhpa (did you mean mcp_agent_alpha?)")
        .await;
    is_fed_back(decide(&["x"], &[], json!([])), "selected_agents is empty").await;
    let cycle = json!([task("a", A, "x", &["b"]), task("b", B, "y", &["a"])]);
    is_fed_back(decide(&["x"], &[A, B], cycle), "in a cycle: a → b → a").await;
    let unheard = json!([task("a", A, "x", &["z"])]);
    is_fed_back(decide(&["x"], &[A], unheard), "depends on an unknown task: z").await;
}

/// S1.04: The repairs within one decision come first: the same request with what was wrong, at most twice.
#[tokio::test]
async fn json_that_breaks_the_schema_is_repaired_within_the_decision() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("supervisor", 0) if asked.text.contains("not a valid `supervisor_decision`") => {
            Some(decide(&["better"], &[A], json!([])))
        }
        ("supervisor", 0) => Some(Reply::text("I would ask alpha.")),
        ("agent", _) => Some(Reply::text("done")),
        _ => None,
    }))
    .await;
    assert_done(&room.ask("Go").await);
    assert_eq!(room.requests(Role::Supervisor).len(), 3);
    let first = &room.requests(Role::Supervisor)[0];
    assert_eq!(first.body["response_format"]["json_schema"]["name"], "supervisor_decision");
    let schema = &first.body["response_format"]["json_schema"]["schema"];
    let mut fields: Vec<&str> =
        schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        ["clarification", "confidence", "plan", "selected_agents", "tasks", "thought_process"]
    );
}

#[tokio::test]
async fn an_incoherent_supervisor_is_stopped_and_the_answer_says_so_and_all_tokens_are_counted() {
    let room = Room::in_memory(script(|asked| match asked.role {
        "supervisor" => Some(Reply::text("Nonsense.").usage(100, 10)),
        _ => None,
    }))
    .await;
    let report = room.ask("Hm?").await;
    assert_nothing_worked(&report);
    let answer = report.answer.as_deref().unwrap();
    assert!(answer.contains("no usable decision could be made"), "{answer}");
    // Two decisions of three attempts each.
    assert_eq!(room.requests(Role::Supervisor).len(), 6);
    assert_eq!((report.usage.input_tokens, report.usage.output_tokens), (600, 60));
    assert!(room.requests(Role::Qa).is_empty(), "a model would have nothing to answer from");
}

/// With no server at all there is still an answer.
#[tokio::test]
async fn without_any_agent_the_supervisor_can_only_finish() {
    let mut room = Room::in_memory(script(|asked| match asked.role {
        "supervisor" => Some(super::finish()),
        _ => None,
    }))
    .await;
    room.servers.clear();
    assert_done(&room.ask("Hello").await);
}

/// Small models write the word where null is meant, and IDs in any form.
#[tokio::test]
async fn a_word_for_null_is_no_question_and_an_odd_id_means_nothing() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("supervisor", 0) => {
            let tasks =
                json!([task("@direct", A, "Look.", &[]), task("a b/c", B, "See.", &["@direct"])]);
            Some(Reply::json(json!({
                "thought_process": "Thinking.", "plan": ["look"], "selected_agents": [A, B],
                "tasks": tasks, "clarification": "None",
            })))
        }
        ("agent", _) => Some(Reply::text("done")),
        _ => None,
    }))
    .await;
    let report = room.ask("Go").await;
    assert_done(&report);
    let ids: Vec<&str> = report.results.iter().map(|result| result.id.as_str()).collect();
    assert_eq!(ids, ["1.1._direct", "1.1.a_b_c"]);
}
