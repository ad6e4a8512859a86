//! One thread, many faces: begun by one, continued and answered by any other, and by the command line (X8).

use serde_json::{Value, json};

use super::face::{self, Answer, Begun, Face, keep_team};
use super::on_both;
use super::served::Served;

on_both!(
    a_thread_of_any_api_is_continued_by_any_other,
    a_clarification_in_any_api_is_answered_by_any_other,
    a_request_for_approval_in_any_api_is_decided_by_any_other,
    two_requests_for_approval_in_any_api_are_decided_by_any_other,
    words_that_answer_no_question_are_refused_and_leave_no_run,
    a_thread_of_a_team_stays_with_the_team_in_every_api,
);

/// Returns a part of all pairs of faces: over four parts each pair comes once, and each face is first and last in each.
fn pairs(part: usize) -> Vec<(Face, Face)> {
    let all = face::ALL.iter().enumerate();
    let pairs = all.flat_map(|(at, one)| {
        let others = face::ALL.iter().enumerate();
        others.filter(move |(other, _)| (at + other) % 4 == part).map(|(_, other)| (*one, *other))
    });
    pairs.collect()
}

/// Waits until a thread has answered and asks nothing more, and returns its state.
async fn answered(served: &Served, begun: &Begun, how: (Face, Face), turns: u64) -> Value {
    let path = format!("/threads/{}/state", begun.thread);
    let state = served
        .until_got(&path, |state| {
            let values = &state["values"];
            let is_done = state["next"] == json!([]) && state["interrupts"] == json!([]);
            is_done && values["turn"] == turns && values["answer"].is_string()
        })
        .await;
    assert_eq!(state["values"]["answer"], "Hello from the star.", "{how:?}: {state}");
    if let Some(task) = begun.task.as_ref().filter(|_| turns == 1) {
        // The thread is where it is to be a moment before its run has ended.
        let is_done = |shown: &Value| shown["status"]["state"] == "TASK_STATE_COMPLETED";
        let shown = served.until_got(&format!("/a2a/tasks/{task}"), is_done).await;
        let answer = &shown["artifacts"][0]["parts"][0]["text"];
        assert_eq!(answer, "Hello from the star.", "{how:?}: {shown}");
    }
    state
}

/// X8
async fn a_thread_of_any_api_is_continued_by_any_other(served: Served) {
    for how in pairs(0) {
        let (first, second) = how;
        let (begun, _) = first.begin(&served, "hello").await;
        second.continue_with(&served, &begun.thread, "hello again").await;
        let state = answered(&served, &begun, how, 2).await;
        let content = state["values"]["messages"].to_string();
        assert!(content.contains("hello again"), "{how:?}: {content}");
    }
}

/// X8
async fn a_clarification_in_any_api_is_answered_by_any_other(served: Served) {
    for how in pairs(1) {
        let (first, second) = how;
        let (begun, words) = first.begin(&served, "clarify this").await;
        assert!(words.is_empty() || words.starts_with("Which year?"), "{how:?}: {words}");
        second.answer(&served, &begun.thread, Answer::Words("1945")).await;
        answered(&served, &begun, how, 1).await;
    }
}

/// X8
async fn a_request_for_approval_in_any_api_is_decided_by_any_other(served: Served) {
    for (number, how) in pairs(2).into_iter().enumerate() {
        let (first, second) = how;
        let (begun, words) = first.begin(&served, "approve this").await;
        assert!(words.is_empty() || words.contains("`approve` or `deny`"), "{how:?}: {words}");
        second.answer(&served, &begun.thread, Answer::Approve).await;
        answered(&served, &begun, how, 1).await;
        assert_eq!(served.read("notes.jsonl").lines().count(), number + 1, "{how:?}");
    }
}

/// X8
async fn two_requests_for_approval_in_any_api_are_decided_by_any_other(served: Served) {
    let notes = || {
        let lines = |name: &str| served.read(name).lines().count();
        lines("notes.jsonl") + lines("diary.jsonl")
    };
    for (number, how) in pairs(3).into_iter().enumerate() {
        let (first, second) = how;
        let (begun, words) = first.begin(&served, "twice").await;
        let (_, state) = served.get(&format!("/threads/{}/state", begun.thread)).await;
        let open = state["interrupts"].as_array().unwrap();
        assert_eq!(open.len(), 2, "{how:?}: {state}");
        for one in open {
            let id = one["id"].as_str().unwrap();
            assert!(words.is_empty() || words.contains(id), "{how:?}: {words}");
        }
        let before = notes();
        let is_even = number % 2 == 0;
        let answer = if is_even { Answer::ApproveFirst } else { Answer::Approve };
        second.answer(&served, &begun.thread, answer).await;
        answered(&served, &begun, how, 1).await;
        assert_eq!(notes() - before, if is_even { 1 } else { 2 }, "{how:?}");
    }
}

/// X8
async fn words_that_answer_no_question_are_refused_and_leave_no_run(served: Served) {
    for (question, words) in [("twice", "approve"), ("approve this", "perhaps")] {
        let (begun, _) = Face::AgentServer.begin(&served, question).await;
        let runs = format!("/threads/{}/runs", begun.thread);
        for face in [Face::Responses, Face::Chat, Face::A2a, Face::Mcp] {
            let (code, content, why) = face.sent(&served, Some(&begun.thread), words).await;
            assert_eq!(code, 400, "{face:?}: {content}");
            let why = why.unwrap_or_else(|| content.to_string());
            let way_out = if question == "twice" { "approve all" } else { "approve or deny" };
            assert!(why.contains(way_out), "{face:?}: {why}");
        }
        let body = json!({ "assistant_id": "swarm", "command": { "resume": words } });
        assert_eq!(served.post(&runs, &body).await.0, 422);
        let (_, listed) = served.get(&runs).await;
        assert_eq!(listed.as_array().unwrap().len(), 1, "no run was kept: {listed}");
        let (_, thread) = served.get(&format!("/threads/{}", begun.thread)).await;
        assert_eq!(thread["status"], "interrupted", "it still waits: {thread}");
    }
}

/// S1.10, X8
async fn a_thread_of_a_team_stays_with_the_team_in_every_api(served: Served) {
    keep_team(&served).await;
    let mut body = saying_to("team_keepers", "hello");
    let (code, content) = served.post("/threads", &json!({})).await;
    assert_eq!(code, 200, "{content}");
    let thread = content["thread_id"].as_str().unwrap().to_owned();
    let wait = format!("/threads/{thread}/runs/wait");
    assert_eq!(served.post(&wait, &body).await.0, 200);
    let faces =
        [Face::Responses, Face::Chat, Face::A2a, Face::Mcp, Face::Protocol, Face::CommandLine];
    let mut turns = 1;
    for face in faces {
        face.continue_with(&served, &thread, "hello again").await;
        turns += 1;
        let begun = Begun { thread: thread.clone(), task: None };
        let state = answered(&served, &begun, (Face::AgentServer, face), turns).await;
        let preferred = &state["values"]["preferences"]["team"];
        assert_eq!(preferred, "team_keepers", "{face:?}: {state}");
        let (_, noted) = served.get(&format!("/threads/{thread}")).await;
        assert_eq!(noted["metadata"]["graph_id"], "team_keepers", "{face:?}: {noted}");
    }
    // Who names the star gets the star.
    body["assistant_id"] = json!("swarm");
    assert_eq!(served.post(&wait, &body).await.0, 200);
    let (_, state) = served.get(&format!("/threads/{thread}/state")).await;
    assert!(state["values"]["preferences"]["team"].is_null(), "{state}");
}

fn saying_to(assistant: &str, text: &str) -> Value {
    json!({ "assistant_id": assistant, "input": { "messages": [{ "role": "user", "content": text }] } })
}
