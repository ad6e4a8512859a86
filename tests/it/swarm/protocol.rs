//! Forms of a decision: one agent at a time, or a whole plan; and what follows from repairs (S1.04).

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Script};
use perihelion::runtime::RunStatusView;
use perihelion::swarm::Request;
use serde_json::{Value, json};

use super::{A, B, Room, assert_done, assert_nothing_worked, decide, script};

/// A room under a protocol, with `alpha` alone or both workshops.
pub(super) async fn room(protocol: &str, is_alone: bool, script: Script) -> Room {
    let mut room = Room::in_memory(script).await.with_env("PERIHELION_MODELS_PROTOCOL", protocol);
    if is_alone {
        room.servers = room.workshop("alpha", "");
    }
    room
}

pub(super) fn choose(agent: &str, task: &str) -> Reply {
    Reply::json(json!({ "agent": agent, "task": task }))
}

pub(super) fn schema_of(request: &perihelion::llm::scripted::RecordedRequest) -> (&str, &Value) {
    let format = &request.body["response_format"]["json_schema"];
    (format["name"].as_str().unwrap_or_default(), &format["schema"])
}

/// S1.04: one agent and its task, chosen from the names that there are; a thread replays alike under any protocol.
#[tokio::test]
async fn the_compact_form_asks_for_one_agent_and_its_task() {
    let mut room = room(
        "compact",
        false,
        script(|asked| match (asked.role, asked.results) {
            ("supervisor", 0) => Some(choose(B, "Find the color.")),
            ("supervisor", _) => Some(choose("qa", "")),
            ("agent", _) if asked.tools == 0 => {
                Some(Reply::call("look_up", json!({ "key": "color" })))
            }
            ("agent", _) => Some(Reply::text("Teal.")),
            _ => None,
        }),
    )
    .await;
    let report = room.ask("Which color does the workshop beta know?").await;
    assert_done(&report);
    assert_eq!((&*report.results[0].agent, &*report.results[0].task), (B, "Find the color."));
    let requests = room.requests(Role::Supervisor);
    assert_eq!(requests.len(), 2);
    // What fits the request comes first, and qa once there is something to answer from.
    for (request, names) in requests.iter().zip([json!([B, A]), json!([A, B, "qa"])]) {
        let (name, schema) = schema_of(request);
        assert_eq!(name, "supervisor_choice");
        assert_eq!(schema["properties"]["agent"]["enum"], names);
        assert!(request.is_streamed(), "so that an answer that repeats itself can be ended");
        assert!(request.texts()[0].len() < 1_200, "{}", request.texts()[0]);
    }
    for protocol in ["full", "auto", "compact"] {
        room = room.with_env("PERIHELION_MODELS_PROTOCOL", protocol);
        let replayed = room.replay().await;
        assert!(replayed.divergence.is_none(), "{protocol}: {replayed:#?}");
    }
}

/// S1.04: where an endpoint cut a task at the bound that it was sent, the agent gets the request itself.
#[tokio::test]
async fn a_task_that_was_cut_at_its_bound_is_replaced_by_the_request() {
    const BOUND: usize = 240;
    for (length, is_cut) in [(BOUND - 1, false), (BOUND, true), (BOUND + 1, false)] {
        let task = "ö".repeat(length);
        let written = task.clone();
        let room = room(
            "compact",
            false,
            script(move |asked| match (asked.role, asked.results) {
                ("supervisor", 0) => Some(choose(B, &written)),
                ("supervisor", _) => Some(choose("qa", "")),
                ("agent", _) => Some(Reply::text("Done.")),
                _ => None,
            }),
        )
        .await;
        let report = room.ask("Which color, and which size?").await;
        let requests = room.requests(Role::Supervisor);
        let (_, schema) = schema_of(&requests[0]);
        assert_eq!(schema["properties"]["task"]["maxLength"], BOUND);
        let given = if is_cut { "Which color, and which size?" } else { &task };
        assert_eq!(report.results[0].task, given, "{length}");
    }
}

/// S1.07: a reflector in the compact form approves or rejects; an answer in the full form is read as well.
#[tokio::test]
async fn the_compact_form_of_a_verdict_has_two_fields() {
    let room = room(
        "compact",
        true,
        script(|asked| match (asked.role, asked.tools) {
            ("agent", 0) => Some(Reply::call("look_up", json!({ "key": "color" }))),
            ("agent", _) if asked.text.contains("Say it in French.") => Some(Reply::text("Bleu.")),
            ("agent", _) => Some(Reply::text("Teal.")),
            ("reflector", _) if asked.text.contains("Bleu.") => {
                Some(super::verdict("FIXED", Some("Sarcelle."), None))
            }
            ("reflector", _) => {
                Some(Reply::json(json!({ "status": "REJECTED", "feedback": "Say it in French." })))
            }
            _ => None,
        }),
    )
    .await;
    let report = room.ask("Which color?").await;
    assert_eq!(report.answer.as_deref(), Some("Sarcelle."));
    let requests = room.requests(Role::Reflector);
    assert_eq!(requests.len(), 2, "nothing was repaired");
    let (name, schema) = schema_of(&requests[0]);
    assert_eq!(name, "reflection_choice");
    assert_eq!(schema["properties"]["status"]["enum"], json!(["APPROVED", "REJECTED"]));
    assert!(!requests[0].contains("refined_output"));
    let replayed = room.with_env("PERIHELION_MODELS_PROTOCOL", "full").replay().await;
    assert!(replayed.divergence.is_none(), "{replayed:#?}");
}

/// S1.04: a thread that began in one form continues in another, and all of it replays.
#[tokio::test]
async fn a_thread_continues_under_another_protocol() {
    let mut room = room(
        "full",
        true,
        script(|asked| match (asked.role, asked.results) {
            ("supervisor", 0) => Some(decide(&["look"], &[A], json!([]))),
            ("agent", _) if asked.tools == 0 => {
                Some(Reply::call("look_up", json!({ "key": "color" })))
            }
            ("agent", _) => Some(Reply::text("Teal.")),
            _ => None,
        }),
    )
    .await;
    assert_eq!(room.ask("Which color?").await.answer.as_deref(), Some("The answer [1]."));
    room = room.with_env("PERIHELION_MODELS_PROTOCOL", "auto");
    assert_eq!(room.ask("Which color now?").await.answer.as_deref(), Some("Teal."));
    for protocol in ["full", "compact"] {
        room = room.with_env("PERIHELION_MODELS_PROTOCOL", protocol);
        let replayed = room.replay().await;
        assert!(replayed.divergence.is_none(), "{protocol}: {replayed:#?}");
    }
}

/// S1.04: names and bounds stand in the schema; what an endpoint that enforces nothing sends is read all the same.
#[tokio::test]
async fn the_full_form_names_the_agents_and_bounds_texts() {
    let room = room(
        "full",
        false,
        script(|asked| match (asked.role, asked.results) {
            // Without a thought, a plan or the prefix.
            ("supervisor", 0) => Some(Reply::json(json!({ "selected_agents": ["beta"] }))),
            ("agent", _) => Some(Reply::text("Teal.")),
            _ => None,
        }),
    )
    .await;
    assert_done(&room.ask("Which color?").await);
    let requests = room.requests(Role::Supervisor);
    assert_eq!(requests.len(), 2, "nothing was repaired");
    let (name, schema) = schema_of(&requests[0]);
    assert_eq!(name, "supervisor_decision");
    let properties = &schema["properties"];
    assert_eq!(properties["selected_agents"]["items"]["enum"], json!([A, B, "qa"]));
    assert_eq!(properties["tasks"]["items"]["properties"]["agent"]["enum"], json!([A, B, "qa"]));
    assert_eq!(properties["thought_process"]["maxLength"], 1_500);
}

/// S1.04: `auto` learns while the process lives.
#[tokio::test]
async fn auto_asks_for_less_after_a_model_failed_at_decisions() {
    let room = room(
        "auto",
        false,
        script(|asked| match (asked.role, asked.results) {
            ("supervisor", 0) if asked.text.contains("Choose who works next") => {
                Some(choose(B, "Look."))
            }
            ("supervisor", _) if asked.text.contains("Choose who works next") => {
                Some(choose("qa", ""))
            }
            ("supervisor", _) => Some(Reply::text("I would ask beta.")),
            ("agent", _) => Some(Reply::text("Teal.")),
            _ => None,
        }),
    )
    .await;
    let runtime = room.open().await;
    let request = |question: &str| Request { question: question.into(), ..Request::default() };
    let options = || runtime.run_options();
    let first = runtime.ask(room.thread, None, request("What does beta know?"), options()).await;
    assert_eq!(first.unwrap().status, RunStatusView::Done);
    let names: Vec<String> =
        room.requests(Role::Supervisor).iter().map(|one| schema_of(one).0.to_owned()).collect();
    // Three attempts, then words choose, and the next decision is a small one.
    assert_eq!(
        names,
        ["supervisor_decision", "supervisor_decision", "supervisor_decision", "supervisor_choice"]
    );
    let third = &room.requests(Role::Supervisor)[2].body;
    assert_eq!(third["temperature"], 0.2, "what failed twice is asked in another manner");
    let second = runtime.ask(room.thread, None, request("And now?"), options()).await;
    assert_eq!(second.unwrap().status, RunStatusView::Done);
    assert_eq!(schema_of(&room.requests(Role::Supervisor)[4]).0, "supervisor_choice");
    room.close(runtime).await;
    assert!(room.replay().await.divergence.is_none());
}

/// S1.13: with all results failed no model writes the answer, and one that was cut short before any result neither.
#[tokio::test]
async fn without_a_result_the_answer_is_written_by_rule() {
    let room = room(
        "compact",
        false,
        script(|asked| match asked.role {
            "supervisor" => Some(Reply::text("Nonsense.")),
            _ => None,
        }),
    )
    .await;
    let report = room.ask("Hm?").await;
    assert_nothing_worked(&report);
    assert!(room.requests(Role::Qa).is_empty());
    let answer = report.answer.unwrap();
    assert!(answer.starts_with("The request could not be answered"), "{answer}");
}
