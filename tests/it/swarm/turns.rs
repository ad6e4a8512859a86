//! Several requests on one thread: each sees what was said, and counts only its own.

use perihelion::checkpoint::{Error as StoreError, NewThread};
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Script};
use perihelion::runtime::Error;
use perihelion::swarm::Request;
use serde_json::json;

use super::{A, Room, assert_done, decide, script};
use crate::runner::world::outrun;
use crate::store_suite::{on_durable_stores, on_every_store, stores::Fixture, writer::new_thread};

on_durable_stores!(of_two_first_questions_on_a_thread_the_second_finds_it_busy);
on_every_store!(a_second_request_sees_the_history_and_counts_its_own_results);

fn looks() -> Script {
    script(|asked| match (asked.role, asked.tools, asked.results) {
        ("supervisor", _, 0) => Some(decide(&["look"], &[A], json!([])).usage(100, 10)),
        ("supervisor", ..) => Some(super::finish().usage(200, 20)),
        ("agent", 0, _) => Some(Reply::call("look_up", json!({ "key": "color" })).usage(1_000, 1)),
        ("agent", ..) => Some(Reply::text("Teal.").usage(2_000, 2)),
        ("reflector", ..) => Some(super::approved().usage(30, 3)),
        ("qa", ..) => Some(Reply::text("It is teal [1].").usage(5, 5)),
        _ => None,
    })
}

/// S1.01, S1.03, S1.04
async fn a_second_request_sees_the_history_and_counts_its_own_results(fixture: &Fixture) {
    let room = Room::on(fixture, looks()).await;
    let first = room.ask("Which color?").await;
    let second = room.ask("Are you sure?").await;
    for report in [&first, &second] {
        assert_done(report);
        assert_eq!(report.results.len(), 1);
        assert_eq!(report.citations.len(), 1);
        assert_eq!(report.citations[0].number, 1);
        assert_eq!((report.usage.input_tokens, report.usage.output_tokens), (3_335, 41));
    }
    assert_eq!(second.results[0].id, "2.1.r1");

    let state = room.state().await;
    assert_eq!((state.turn, state.results.len(), state.messages.len()), (2, 2, 6));
    assert_eq!(state.spent.usage.input_tokens, 6_670);

    let asked = &room.requests(Role::Supervisor)[2];
    let text = asked.last_text();
    let history = text.split("</session_history>").next().unwrap();
    assert!(history.contains("Which color?") && history.contains("It is teal [1]."), "{history}");
    assert!(!history.contains("Teal."), "what agents report is not said to the user: {history}");
    assert!(text.contains("(there is no plan yet)") && text.contains("(no agent has worked yet)"));
    assert!(room.requests(Role::Qa)[1].contains("<session_history>"));
    assert!(!room.requests(Role::Qa)[0].contains("</session_history>"));

    // The window of agents: the last five messages, no matter who spoke.
    let window = room.agent_requests(A)[2].last_text().to_owned();
    assert_eq!(window.matches("<message role=").count(), 4);
}

/// S1.06
#[tokio::test]
async fn an_agent_sees_five_messages_and_not_the_whole_history() {
    let room = Room::in_memory(looks()).await;
    for _ in 0..3 {
        assert_done(&room.ask("Which color?").await);
    }
    let last = room.agent_requests(A)[4].last_text().to_owned();
    assert_eq!(last.matches("<message role=").count(), 5);
}

/// DESIGN §5: gateways attribute cost by these headers.
#[tokio::test]
async fn every_request_names_its_role_its_thread_and_its_agent() {
    let room = Room::in_memory(looks()).await;
    assert_done(&room.ask("Which color?").await);
    let thread = room.thread.to_string();
    for request in room.model.requests() {
        assert_eq!(request.headers["x-perihelion-thread"], thread);
        let agent = request.headers.get("x-perihelion-agent").map(String::as_str);
        match request.headers["x-perihelion-role"].as_str() {
            "agent" | "reflector" => assert_eq!(agent, Some(A)),
            "supervisor" | "qa" => assert_eq!(agent, None),
            other => panic!("{other}"),
        }
        assert_eq!(request.is_streamed(), request.role == "qa");
    }
    let formats: Vec<String> = room
        .model
        .requests()
        .iter()
        .filter_map(|one| {
            one.body["response_format"]["json_schema"]["name"].as_str().map(Into::into)
        })
        .collect();
    assert_eq!(formats, ["supervisor_decision", "reflection", "supervisor_decision"]);
}

/// S3.04: every three turns, from what was said; and the summary so far goes into the next one.
#[tokio::test]
async fn a_long_conversation_is_summed_up_every_three_turns_and_the_summary_is_in_every_prompt() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("summarizer", _) if asked.text.contains("<summary_so_far>") => {
            Some(Reply::text("Blue, then green.").usage(7, 3))
        }
        ("summarizer", _) => Some(Reply::text("They asked of <blue>.").usage(7, 3)),
        ("supervisor", 0) => Some(decide(&["look"], &[A], json!([]))),
        ("agent", _) => Some(Reply::text("Teal.")),
        _ => None,
    }))
    .await;
    for turn in 1..=7 {
        // Some clients name their messages themselves.
        let message_id = (turn % 2 == 0).then(|| format!("client-{turn}"));
        let question = format!("Question {turn}?");
        let request = Request { question, message_id, ..Request::default() };
        assert_done(&room.ask_for(request).await.unwrap());
        let summed = room.requests(Role::Summarizer).len();
        assert_eq!(
            summed,
            if turn < 4 {
                0
            } else if turn < 7 {
                1
            } else {
                2
            },
            "{turn}"
        );
    }
    let asked = room.requests(Role::Summarizer);
    assert!(asked[0].contains("Question 1?") && asked[0].contains("Question 3?"));
    assert!(asked[0].contains("Question 2?") && asked[1].contains("Question 4?"));
    assert!(!asked[0].contains("Question 4?") && !asked[0].contains("Teal."));
    assert!(asked[1].contains("Question 6?") && !asked[1].contains("Question 3?"));
    assert_eq!(asked[0].stage.as_deref(), Some("conversation"));
    let entry = "<entry key=\"conversation_summary\">They asked of &lt;blue&gt;.</entry>";
    for role in [Role::Supervisor, Role::Agent, Role::Qa] {
        let with = room.requests(role).iter().filter(|one| one.contains(entry)).count();
        let turns = if role == Role::Supervisor { 6 } else { 3 };
        assert_eq!(with, turns, "{role:?}: turns 4 to 6");
    }
    let summary = room.state().await.summary.clone().unwrap();
    assert_eq!((summary.text.as_str(), summary.turn), ("Blue, then green.", 6));
}

/// S3.04: a summary that cannot be had costs nothing but itself.
#[tokio::test]
async fn a_summary_that_fails_stops_no_turn() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.results) {
        ("summarizer", _) => Some(Reply::status(503, "overloaded")),
        ("supervisor", 0) => Some(decide(&["look"], &[A], json!([]))),
        ("agent", _) => Some(Reply::text("Teal.")),
        _ => None,
    }))
    .await;
    for turn in 1..=4 {
        assert_done(&room.ask(&format!("Question {turn}?")).await);
    }
    assert_eq!(room.state().await.summary, None);
}

async fn of_two_first_questions_on_a_thread_the_second_finds_it_busy(fixture: &Fixture) {
    let room = Room::on(fixture, looks()).await;
    outrun(room.url.as_deref().unwrap(), NewThread { id: room.thread, ..new_thread() });
    let request = Request { question: "Which color?".into(), ..Request::default() };
    let refused = room.ask_for(request).await.unwrap_err();
    let Error::Store(StoreError::Busy { thread, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(thread, room.thread);
}
