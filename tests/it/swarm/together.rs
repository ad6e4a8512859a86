//! Several calls in one answer of the model: those that read are in flight together, in an order that is kept.

use std::time::Duration;

use perihelion::llm::scripted::{Reply, Script};
use perihelion::runtime::RunReport;
use serde_json::{Value, json};

use super::{A, Room, assert_done, decide, script};
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(
    reading_calls_of_one_answer_are_in_flight_together,
    a_crash_between_calls_of_one_answer_leaves_no_trace
);

const MEETS: &str = "args = [\"meet\"]\nrepeatable = [\"meet\", \"append_and_hang\", \"look_up\"]";

/// One agent that makes calls in one answer, and then says what it was told.
fn calls(calls: &'static [(&str, &str)]) -> Script {
    script(move |asked| match (asked.role, asked.tools, asked.results) {
        ("supervisor", _, 0) => Some(decide(&["look"], &[A], json!([]))),
        ("agent", 0, _) => {
            let mut made = calls.iter().map(|(tool, text)| {
                let arguments: Value = serde_json::from_str(text).unwrap();
                (tool.to_string(), arguments)
            });
            let (tool, arguments) = made.next().unwrap();
            Some(made.fold(Reply::call(tool, arguments), |reply, (tool, arguments)| {
                reply.and_call(tool, arguments)
            }))
        }
        ("agent", ..) => Some(Reply::text("Found it.")),
        _ => None,
    })
}

/// Asks, for far longer than it takes: calls that wait for each other would else hold the suite up.
async fn ask(room: &Room) -> RunReport {
    tokio::time::timeout(Duration::from_secs(60), room.ask("Go")).await.unwrap()
}

/// What the agent was told of its calls, in the order of the request.
fn prompt(room: &Room) -> Vec<String> {
    let request = room.agent_requests(A).pop().unwrap();
    let messages = request.body["messages"].as_array().unwrap().clone();
    let tools = messages.into_iter().filter(|message| message["role"] == "tool");
    tools.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

/// What the journal holds of calls, in its order.
async fn recorded(room: &Room) -> Vec<(String, Value)> {
    let mut rows = room.store.effects(room.thread, None).await.unwrap();
    rows.retain(|row| row.name.starts_with("alpha."));
    rows.sort_by_key(|row| row.number);
    let arguments = |row: &perihelion::checkpoint::EffectRow| {
        row.request.decode::<Value>().unwrap()["arguments"].clone()
    };
    rows.iter().map(|row| (row.name.clone(), arguments(row))).collect()
}

async fn replays(room: &Room) {
    let replay = room.replay().await;
    assert!(replay.divergence.is_none(), "{replay:#?}");
}

/// S1.06: each of the three is answered only when all have come, and the last one first.
async fn reading_calls_of_one_answer_are_in_flight_together(fixture: &Fixture) {
    let three = calls(&[
        ("meet", r#"{ "of": 3, "name": "one" }"#),
        ("meet", r#"{ "of": 3, "name": "two" }"#),
        ("meet", r#"{ "of": 3, "name": "three" }"#),
        ("append", r#"{ "line": "first" }"#),
        ("append", r#"{ "line": "second" }"#),
        ("look_up", r#"{ "key": "color" }"#),
    ]);
    let room = Room::on(fixture, three).await.with_alpha(MEETS);
    assert_done(&ask(&room).await);
    assert_eq!(room.log("alpha"), ["came 1", "came 2", "came 3", "first", "second"]);
    let words = ["met as one", "met as two", "met as three", "line 4", "line 5", "teal"];
    for (prompt, words) in prompt(&room).iter().zip(words) {
        assert!(prompt.contains(words), "missing: {words}\n{prompt}");
    }
    let names: Vec<Value> = recorded(&room).await.into_iter().map(|(_, one)| one).collect();
    assert_eq!((&names[0]["name"], &names[2]["name"]), (&json!("one"), &json!("three")));
    replays(&room).await;
}

/// S1.06, X2: one call of the answer has ended and one is under way when the process dies.
async fn a_crash_between_calls_of_one_answer_leaves_no_trace(fixture: &Fixture) {
    const CALLS: &[(&str, &str)] = &[
        ("append_and_hang", r#"{ "line": "once" }"#),
        ("look_up", r#"{ "key": "color" }"#),
        ("look_up", r#"{ "key": "size" }"#),
    ];
    let room = Room::on(fixture, calls(CALLS)).await.with_alpha(MEETS);
    // Both that end have ended, whichever was sent first.
    let mut run = room.ask_in_background("Go").await;
    room.until(&mut run, room.until_log("alpha", 1)).await;
    room.until(&mut run, until_settled(&room, 2)).await;
    room.crash(run).await;
    std::fs::write(format!("{}.go", room.log_path("alpha").display()), "").unwrap();
    let report = room.resume().await;
    assert_done(&report);
    assert_eq!(room.log("alpha"), ["once", "once"], "what had no outcome was sent again");
    let rows = room.store.effects(room.thread, None).await.unwrap();
    let looked = rows.iter().filter(|row| row.name == "alpha.look_up");
    assert!(looked.clone().all(|row| row.attempt == 1), "what had one was not: {rows:#?}");
    assert_eq!(looked.count(), 2);
    room.assert_nothing_paid_twice("");
    replays(&room).await;

    let calm = Room::on(fixture, calls(CALLS)).await.with_alpha(MEETS);
    std::fs::write(format!("{}.go", calm.log_path("alpha").display()), "").unwrap();
    let undisturbed = ask(&calm).await;
    assert_eq!(recorded(&room).await, recorded(&calm).await);
    assert_eq!(report.results[0].output, undisturbed.results[0].output);
    assert_eq!(prompt(&room)[1..], prompt(&calm)[1..]);
}

/// Waits until so many calls have an outcome.
async fn until_settled(room: &Room, calls: usize) {
    loop {
        let effects = room.store.effects(room.thread, None).await.unwrap();
        let ended = |row: &&perihelion::checkpoint::EffectRow| {
            row.name.starts_with("alpha.") && row.outcome.is_some()
        };
        if effects.iter().filter(ended).count() == calls {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// S1.06: the bound of the server holds: the third waits until one of the first two has ended.
#[tokio::test]
async fn calls_in_flight_never_exceed_the_limit_of_the_server() {
    let four = calls(&[
        ("meet", r#"{ "of": 2, "name": "one" }"#),
        ("meet", r#"{ "of": 2, "name": "two" }"#),
        ("meet", r#"{ "of": 2, "name": "three" }"#),
        ("meet", r#"{ "of": 2, "name": "four" }"#),
    ]);
    let lines = format!("{MEETS}\nmax_concurrent_calls = 2\ntool_total_timeout_sec = 30");
    let room = Room::in_memory(four).await.with_alpha(&lines);
    assert_done(&ask(&room).await);
    assert_eq!(room.log("alpha"), ["came 1", "came 2", "came 1", "came 2"]);
}
