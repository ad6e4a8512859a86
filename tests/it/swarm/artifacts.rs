//! Results too long for a prompt: a preview, the blackboard, and reading on (S1.01, S1.06).

use perihelion::llm::Role;
use perihelion::llm::scripted::Reply;
use serde_json::json;

use super::{A, B, Room, assert_done, decide, script, task};

const READ: &str = "perihelion_read_artifact";

/// S1.06
#[tokio::test]
async fn a_long_result_becomes_an_artifact_that_later_agents_can_read() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.agent, asked.tools) {
        ("supervisor", ..) if asked.results == 0 => {
            let tasks = json!([task("t1", A, "Fetch", &[]), task("t2", B, "Read", &["t1"])]);
            Some(decide(&["fetch", "read"], &[A, B], tasks))
        }
        ("agent", A, 0) => Some(Reply::call("paper", json!({ "words": 5000 }))),
        ("agent", A, 1) => {
            Some(Reply::call(READ, json!({ "key": "1.1.t1/1", "offset": 1000, "limit": 9 })))
        }
        ("agent", A, _) => Some(Reply::text("Fetched 1.1.t1/1.")),
        ("agent", B, 0) => {
            Some(Reply::call(READ, json!({ "key": "1.1.t1/1", "offset": 43880, "limit": 99999 })))
        }
        ("agent", B, 1) => Some(Reply::call(READ, json!({ "key": "nowhere" }))),
        ("agent", B, _) => Some(Reply::text("Read it.")),
        _ => None,
    }))
    .await;
    let report = room.ask("Go").await;
    assert_done(&report);

    let of_a = room.agent_requests(A);
    let names = |request: usize| of_a[request].body["tools"].to_string();
    assert!(!names(0).contains(READ), "nothing to read yet");
    assert!(names(1).contains(READ));
    let preview = of_a[1].last_text();
    assert!(preview.contains("is kept as the artifact 1.1.t1/1"), "{preview}");
    assert!(preview.len() < 1_500, "{}", preview.len());
    assert!(
        of_a[2].last_text().contains("Characters 1000 to 1009 of 43893"),
        "{}",
        of_a[2].last_text()
    );

    let of_b = room.agent_requests(B);
    assert!(of_b[0].contains("<artifact key=\"1.1.t1/1\">"));
    assert!(of_b[1].last_text().contains("word5000"), "{}", of_b[1].last_text());
    assert!(of_b[2].last_text().contains("there is no artifact nowhere; there are: 1.1.t1/1"));
    assert!(room.requests(Role::Supervisor)[1].contains("<artifact key=\"1.1.t1/1\">"));

    // Reading is no call of a server: no effect is recorded, and the citation names where the data came from.
    let effects = room.store.effects(room.thread, None).await.unwrap();
    let calls: Vec<&str> =
        effects.iter().map(|row| row.name.as_str()).filter(|name| name.contains('.')).collect();
    assert_eq!(calls, ["alpha.paper"]);
    let of_second: Vec<_> =
        report.citations.iter().filter(|one| one.number == 2).map(|one| &*one.source).collect();
    assert_eq!(of_second, ["alpha.paper"]);
    assert_eq!(room.state().await.global_state.get("1.1.t1/1").unwrap().bytes, 43_893);
}
