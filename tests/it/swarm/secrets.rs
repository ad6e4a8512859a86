//! Secrets never reach checkpoints, prompts, errors or events.

use perihelion::llm::scripted::{Reply, Script};
use perihelion::swarm::Request;
use serde_json::{Value, json};

use super::{A, KEY, Room, TOKEN, assert_done, listening, one_call, script};
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(
    a_secret_that_a_tool_reveals_is_never_stored,
    a_key_that_an_endpoint_echoes_is_never_stored
);

/// Returns everything that is stored of a thread and was told to listeners, as text.
async fn everything(room: &Room, events: String) -> String {
    let dump = room.store.export(room.thread).await.unwrap();
    let mut all = format!("{dump:?}{events}");
    for step in &dump.steps {
        all += &step.delta.decode::<Value>().unwrap().to_string();
        all += &String::from_utf8_lossy(&step.frontier);
    }
    for effect in &dump.effects {
        all += &effect.request.decode::<Value>().unwrap().to_string();
        if let Some(outcome) = &effect.outcome {
            all += &outcome.decode::<Value>().unwrap().to_string();
        }
    }
    for request in room.model.requests() {
        all += &request.body.to_string();
    }
    all
}

async fn run(fixture: &Fixture, script: Script) -> (Room, String) {
    let room = Room::on(fixture, script).await;
    let runtime = room.open().await;
    let (options, mut heard) = listening();
    let request = Request { question: "Which token?".into(), ..Request::default() };
    let report = runtime.ask(room.thread, None, request, options).await.unwrap();
    let mut events = format!("{report:?}");
    while let Ok(event) = heard.try_recv() {
        events += &format!("{event:?}");
    }
    runtime.close().await;
    let all = everything(&room, events).await;
    (room, all)
}

async fn a_secret_that_a_tool_reveals_is_never_stored(fixture: &Fixture) {
    let (room, all) = run(fixture, one_call("look_up", json!({ "key": "token" }))).await;
    assert!(all.contains("The token is "), "the call was made");
    assert!(!all.contains(TOKEN) && !all.contains(KEY));
    assert!(!room.agent_requests(A).is_empty());
}

async fn a_key_that_an_endpoint_echoes_is_never_stored(fixture: &Fixture) {
    let echo = || Reply::status(401, format!("Incorrect API key provided: {KEY}"));
    let (_, all) = run(fixture, script(move |_| Some(echo()))).await;
    assert!(all.contains("Incorrect API key provided"), "{all}");
    assert!(!all.contains(KEY));
}

/// Credentials in the context of a request are for servers: no model reads them.
#[tokio::test]
async fn a_secret_of_the_requests_context_is_in_no_prompt() {
    let room = Room::in_memory(one_call("look_up", json!({ "key": "color" }))).await;
    let context = [("api_headers", TOKEN), ("Authorization", TOKEN), ("unit", "metres")];
    let context = context.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let request = Request { question: "Which?".into(), context, ..Request::default() };
    assert_done(&room.ask_for(request).await.unwrap());
    for asked in room.model.requests() {
        let body = asked.body.to_string();
        assert!(!body.contains(TOKEN) && !body.contains("api_headers"), "{body}");
        assert_eq!(body.contains("metres"), asked.role != "reflector", "{body}");
    }
}
