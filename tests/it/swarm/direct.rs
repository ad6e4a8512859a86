//! With one agent: the request goes straight to it and its answer back, and no model decides (S1.04).

use perihelion::graph::{RunEvent, StreamMode};
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Script};
use perihelion::runtime::{Answer, RunStatusView};
use perihelion::swarm::{FinishReason, Request};
use serde_json::json;

use super::protocol::{choose, room, schema_of};
use super::{A, Room, assert_done, listening, script};
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(the_only_agent_asks_the_user_once_before_its_work);

fn looks_up() -> Script {
    script(|asked| match (asked.role, asked.tools) {
        ("agent", 0) => Some(Reply::call("look_up", json!({ "key": "color" }))),
        ("agent", _) => Some(Reply::text("The color is teal.")),
        _ => None,
    })
}

/// S1.04: the request goes to the only agent, and its answer back: three calls of at most 2,000 estimated
/// tokens.
#[tokio::test]
async fn with_one_agent_a_run_makes_three_model_calls_and_none_for_a_decision() {
    for protocol in ["auto", "compact"] {
        let reads = |asked: &super::Asked<'_>| match (asked.role, asked.tools) {
            ("agent", 0) => Some(Reply::call("read", json!({ "path": "lease.md" }))),
            ("agent", _) => Some(Reply::text("The rent is 940 euros.")),
            _ => None,
        };
        let mut room = room(protocol, true, script(reads)).await;
        let root = room.directory.path().join("papers");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("lease.md"), "The rent is 940 euros a month.\n").unwrap();
        let program = env!("CARGO_BIN_EXE_perihelion");
        room.servers = format!(
            "[mcp_servers.files]\ncommand = {program:?}\nargs = [\"mcp\", \"files\", \"--root\", {root:?}]\n"
        );
        let report = room.ask("How high is the rent?").await;
        assert_done(&report);
        assert_eq!(report.answer.as_deref(), Some("The rent is 940 euros."));
        assert_eq!(report.finish_reason, Some(FinishReason::Answered));
        assert_eq!(report.citations[0].source, "files.read");
        let asked: Vec<String> = room.model.requests().into_iter().map(|one| one.role).collect();
        assert_eq!(asked, ["agent", "agent", "reflector"], "{protocol}");
        let characters = |role: Option<&str>| -> usize {
            let requests = room.model.requests();
            let messages = requests.iter().flat_map(|one| one.body["messages"].as_array().unwrap());
            let kept = messages.filter(|one| role.is_none_or(|role| one["role"] == role));
            kept.map(|one| one["content"].as_str().unwrap_or_default().len()).sum()
        };
        let tools: usize = room
            .model
            .requests()
            .iter()
            .map(|one| one.body.get("tools").map_or(0, |tools| tools.to_string().len()))
            .sum();
        // A token has about four characters.
        let all = characters(None) + tools;
        assert!(all / 4 <= 2_000, "{all} characters");
        let instructions = characters(Some("system"));
        // Of a real model's tokens these are 30 %: JSON takes more of them than words (`make test-models`).
        assert!(instructions / 4 <= 850, "{instructions} of {all} characters");
        let first = &room.requests(Role::Agent)[0];
        assert!(!first.body["tools"].to_string().contains("perihelion_not_mine"));
        assert!(!first.contains("perihelion_not_mine"), "{}", first.texts()[0]);
        let replayed = room.replay().await;
        assert!(replayed.divergence.is_none(), "{replayed:#?}");
    }
}

/// S1.04: a follow-up request finds what was said before, although no supervisor reads it.
#[tokio::test]
async fn the_only_agent_sees_the_conversation() {
    let room = room("auto", true, looks_up()).await;
    for question in ["Which color?", "And which one was that?"] {
        assert_done(&room.ask(question).await);
    }
    let last = room.agent_requests(A).pop().unwrap();
    let user = last.texts()[1].to_owned();
    assert!(user.contains("Which color?") && user.contains("The color is teal."), "{user}");
    assert_eq!(user.matches("And which one was that?").count(), 1, "{user}");
}

/// S1.04: what the only agent could not do is decided on, as ever.
#[tokio::test]
async fn a_direct_request_that_fails_is_decided_on() {
    let room = room(
        "compact",
        true,
        script(|asked| match (asked.role, asked.results) {
            ("agent", _) if asked.text.contains("Again, slowly") => Some(Reply::text("done")),
            ("agent", _) => Some(Reply::status(400, "no")),
            ("supervisor", 1) => Some(choose(A, "Again, slowly")),
            ("supervisor", _) => Some(choose("qa", "")),
            _ => None,
        }),
    )
    .await;
    let report = room.ask("Go").await;
    assert_done(&report);
    assert_eq!(report.answer.as_deref(), Some("The answer [1]."));
    assert_eq!(schema_of(&room.requests(Role::Supervisor)[0]).0, "supervisor_choice");
    assert!(room.replay().await.divergence.is_none());
}

/// S1.07, S1.13: what no source supports is not handed through as an answer.
#[tokio::test]
async fn an_unsupported_output_of_the_only_agent_goes_to_qa_marked_as_such() {
    let room = room(
        "auto",
        true,
        script(|asked| match asked.role {
            "agent" => Some(Reply::text("The door code is 4711.")),
            "qa" => Some(Reply::text("Not confirmed: 4711.")),
            _ => None,
        }),
    )
    .await;
    let report = room.ask("What is the door code?").await;
    assert_eq!(report.results[0].reflection, "UNVERIFIED");
    assert_eq!(report.answer.as_deref(), Some("Not confirmed: 4711."));
    assert!(room.requests(Role::Qa)[0].contains("status=\"unverified\""));
}

/// S1.13, S2.08: what the operator or the caller wants of an answer needs QA.
#[tokio::test]
async fn a_direct_answer_that_needs_a_style_or_a_form_is_written_by_qa() {
    let styled = room("auto", true, looks_up()).await;
    let styled = styled.with_env("PERIHELION_PROMPTS_STYLE", "Short.");
    assert_eq!(styled.ask("Which color?").await.answer.as_deref(), Some("The answer [1]."));

    let formed = room(
        "auto",
        true,
        script(|asked| match (asked.role, asked.tools) {
            ("agent", 0) => Some(Reply::call("look_up", json!({ "key": "color" }))),
            ("agent", _) => Some(Reply::text("The color is teal.")),
            ("qa", _) => Some(Reply::json(json!({ "color": "teal" }))),
            _ => None,
        }),
    )
    .await;
    let schema = json!({ "type": "object", "properties": { "color": { "type": "string" } } });
    let request = Request {
        question: "Which color?".into(),
        answer_schema: Some(schema),
        ..Request::default()
    };
    let report = formed.ask_for(request).await.unwrap();
    assert_eq!(report.answer.as_deref(), Some("{\"color\":\"teal\"}"));
    assert!(formed.requests(Role::Supervisor).is_empty());
}

/// S1.04: nobody decides before the only agent, so it can ask; the question outlives the process and is put once.
async fn the_only_agent_asks_the_user_once_before_its_work(fixture: &Fixture) {
    const ASK: &str = "perihelion_ask_user";
    let mut room = Room::on(
        fixture,
        script(|asked| match (asked.role, asked.tools) {
            ("agent", 0) => Some(Reply::call(ASK, json!({ "question": "Which thing?" }))),
            ("agent", 1) => Some(Reply::call("look_up", json!({ "key": "color" }))),
            ("agent", _) => Some(Reply::text("The lamp is teal.")),
            _ => None,
        }),
    )
    .await
    .with_env("PERIHELION_MODELS_PROTOCOL", "auto");
    room.servers = room.workshop("alpha", "");
    let report = room.ask("Which color has it?").await;
    assert_eq!(report.status, RunStatusView::Interrupted);
    let [open] = report.interrupts.as_slice() else { panic!("{report:#?}") };
    assert_eq!((&*open.kind, &*open.agent), ("clarification", A));
    assert_eq!(open.payload["question"], "Which thing?");
    assert_eq!(room.resume().await.interrupts, report.interrupts);

    let report = room.answer(Answer::Message("The <lamp>.".into())).await;
    assert_done(&report);
    assert_eq!(report.answer.as_deref(), Some("The lamp is teal."));
    room.assert_nothing_paid_twice("");
    assert!(room.agent_requests(A)[1].contains("The &lt;lamp&gt;."));
    assert!(room.requests(Role::Reflector)[0].contains("Which thing?"), "it is evidence");
    assert!(room.replay().await.divergence.is_none());
}

/// S1.04: an agent asks at most five questions for a task, and none without words.
#[tokio::test]
async fn the_only_agent_cannot_ask_for_ever() {
    let room = room(
        "auto",
        true,
        script(|asked| {
            let question =
                if asked.tools == 0 { " ".to_owned() } else { format!("And {}?", asked.tools) };
            match (asked.role, asked.tools) {
                ("agent", 0..6) => {
                    Some(Reply::call("perihelion_ask_user", json!({ "question": question })))
                }
                ("agent", _) => Some(Reply::text("Teal.")),
                _ => None,
            }
        }),
    )
    .await;
    let mut report = room.ask("Which color has it?").await;
    let mut asked = 0;
    while report.status == RunStatusView::Interrupted {
        asked += 1;
        report = room.answer(Answer::Message("That one.".into())).await;
    }
    assert_done(&report);
    assert_eq!(asked, 4, "five with the one that had no words");
}

/// S1.13: the answer of the only agent arrives in pieces, once it is judged.
#[tokio::test]
async fn a_direct_answer_is_streamed() {
    let room = room("auto", true, looks_up()).await;
    let runtime = room.open().await;
    let (options, mut heard) = listening();
    let request = Request { question: "Which color?".into(), ..Request::default() };
    let report = runtime.ask(room.thread, None, request, options).await.unwrap();
    room.close(runtime).await;
    let mut pieces = Vec::new();
    let mut is_judged = false;
    while let Ok(event) = heard.try_recv() {
        let RunEvent::Published { mode, node, payload, .. } = event else { continue };
        is_judged |= payload["type"] == "reflection";
        if mode == StreamMode::Messages {
            assert_eq!((node.as_str(), is_judged), ("qa", true));
            pieces.push(payload["text"].as_str().unwrap().to_owned());
        }
    }
    assert!(pieces.len() > 1);
    assert_eq!(Some(pieces.concat()), report.answer);
}
