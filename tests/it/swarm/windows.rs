//! Windows: however long a thread and however large a result, every request fits, and says what it leaves out.

use perihelion::llm::Role;
use perihelion::llm::scripted::{RecordedRequest, Reply};
use perihelion::swarm::Request;
use serde_json::{Value, json};

use super::{A, Room, assert_done, decide, finish, script};

const WINDOW: usize = 16_000;

/// Counts a request as its endpoint would, rather too low than too high: a quarter of all characters.
fn counted(request: &RecordedRequest) -> usize {
    let messages = request.texts().iter().map(|text| text.chars().count()).sum::<usize>();
    let of = |name: &str| match &request.body[name] {
        Value::Null => 0,
        other => other.to_string().chars().count(),
    };
    (messages + of("tools") + of("response_format")).div_ceil(4)
}

fn assert_all_fit(room: &Room) {
    let requests = room.model.requests();
    let largest = requests.iter().max_by_key(|request| counted(request)).unwrap();
    let tokens = counted(largest);
    assert!(tokens <= WINDOW, "{} asked with {tokens} tokens", largest.role);
}

/// S1.06, S3.04
#[tokio::test]
async fn a_thread_of_three_hundred_turns_stays_inside_its_window() {
    let room = Room::in_memory(script(|asked| match asked.role {
        "supervisor" => Some(finish()),
        "qa" => Some(Reply::text("An answer at length. ".repeat(190))),
        "summarizer" => Some(Reply::text("They talked at length. ".repeat(150))),
        _ => None,
    }))
    .await
    .with_env("PERIHELION_MODELS_CONTEXT_WINDOW", "16000");
    let runtime = room.open().await;
    for turn in 1..=300 {
        let question = format!("Question {turn}: {}", "which one is it, and why? ".repeat(150));
        let request = Request { question, ..Request::default() };
        let options = runtime.run_options();
        assert_done(&runtime.ask(room.thread, None, request, options).await.unwrap());
    }
    room.close(runtime).await;
    assert_all_fit(&room);
    let last = room.requests(Role::Qa).pop().unwrap();
    assert!(last.contains("earlier messages are left out here)"), "{}", last.last_text());
    assert!(last.contains("Question 300: "), "the task stays");
    assert!(last.contains("Question 299: "), "the newest stays");
}

/// S1.06
#[tokio::test]
async fn a_result_of_five_megabytes_and_many_long_ones_stay_inside_the_window() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.tools) {
        ("supervisor", _) if asked.results == 0 => Some(decide(&["fetch"], &[A], json!([]))),
        ("agent", 0) => Some(Reply::call("paper", json!({ "words": 600_000 }))),
        // Each just below what becomes an artifact, together far more than the window.
        ("agent", calls @ 1..12) => Some(Reply::call("paper", json!({ "words": 1_700 + calls }))),
        ("agent", _) => Some(Reply::text("Fetched.")),
        _ => None,
    }))
    .await
    .with_env("PERIHELION_MODELS_CONTEXT_WINDOW", "16000");
    let report = room.ask("Fetch the papers").await;
    assert_done(&report);
    assert_all_fit(&room);
    let agents = room.agent_requests(A);
    assert!(agents[1].last_text().contains("is kept as the artifact"), "{}", agents[1].last_text());
    let last = agents.last().unwrap();
    assert!(last.contains("is left out here, for the window is full"), "{:#?}", last.texts());
    assert!(last.contains("word1711"), "the newest result stays");
    let stored = room.state().await;
    assert!(stored.global_state.iter().any(|(_, artifact)| artifact.bytes > 5_000_000));
}
