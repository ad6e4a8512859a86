//! Tasks that agents hand back as ones for another agent (S1.06).

use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Script};
use serde_json::json;

use super::{A, B, Room, assert_done, assert_nothing_worked, decide, finish, script, task};

const NOT_MINE: &str = "perihelion_not_mine";

/// An alpha that hands everything back, and a supervisor that decides as it is told in each round.
fn handing_back(decisions: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Script {
    script(move |asked| match (asked.role, asked.agent) {
        ("supervisor", _) => Some(decisions(asked.results)),
        ("agent", A) => Some(Reply::call(NOT_MINE, json!({ "reason": "it wants <a map>" }))),
        ("agent", _) => Some(Reply::text("Here is the map.")),
        _ => None,
    })
}

/// S1.06
#[tokio::test]
async fn a_task_that_is_handed_back_goes_to_another_agent_and_what_waited_for_it_is_not_started() {
    let room = Room::in_memory(handing_back(|results| match results {
        0 => {
            let tasks =
                json!([task("t1", A, "Draw it.", &[]), task("t2", B, "Frame it.", &["t1"])]);
            decide(&["draw", "frame"], &[A, B], tasks)
        }
        1 => decide(&["let beta draw"], &[B], json!([task("t3", B, "Draw it.", &[])])),
        _ => finish(),
    }))
    .await;
    let report = room.ask("A framed map, please").await;
    assert_done(&report);

    let result = &report.results[0];
    assert!(result.not_mine);
    assert_eq!(result.error_message(), Some("not mine: it wants <a map>"));
    assert_eq!((result.attempts, result.reflection.as_str()), (1, "UNVERIFIED"));
    let shown = json!(report);
    assert_eq!(
        (&shown["results"][0]["status"], &shown["results"][0]["not_mine"]),
        (&"failed".into(), &true.into())
    );
    assert!(shown["results"][1].get("not_mine").is_none(), "{shown}");

    assert_eq!(room.agent_requests(A).len(), 1);
    assert_eq!(
        room.requests(Role::Reflector).len(),
        1,
        "of what was handed back nothing is judged"
    );
    let again = &room.requests(Role::Supervisor)[1];
    assert!(again.contains("status=\"not_mine\""), "{}", again.last_text());
    assert!(again.contains("failed: not mine: it wants &lt;a map&gt;"), "{}", again.last_text());
    assert!(again.contains("not started, because 1.1.t1 failed: mcp_agent_beta (Frame it.)"));
    let state = room.state().await;
    assert_eq!(state.results.len(), 2, "the framing never began");
}

/// S1.05
#[tokio::test]
async fn the_same_agent_is_not_given_the_same_task_again_and_the_breaker_counts() {
    let room = Room::in_memory(handing_back(|_| decide(&["try"], &[A], json!([])))).await;
    let report = room.ask("A map").await;
    assert_nothing_worked(&report);
    assert_eq!((report.results.len(), room.agent_requests(A).len()), (1, 1));
    let requests = room.requests(Role::Supervisor);
    assert_eq!(requests.len(), 3);
    let prompt = "mcp_agent_alpha handed this very task back (not mine: it wants &lt;a map&gt;): \
                choose another agent, or change the task";
    assert!(requests[2].contains(prompt), "{}", requests[2].last_text());
    let answer = report.answer.unwrap();
    assert!(answer.contains("no usable decision could be made"), "{answer}");
}

/// S1.05: in other words it is the same routing still, without progress.
#[tokio::test]
async fn a_task_that_is_handed_back_in_ever_new_words_is_a_repeated_routing() {
    let room = Room::in_memory(handing_back(|results| {
        let words = format!("Draw it, attempt {results}.");
        decide(&["try"], &[A], json!([task("t", A, &words, &[])]))
    }))
    .await;
    let report = room.ask("A map").await;
    assert_nothing_worked(&report);
    assert_eq!(report.results.len(), 2);
    let answer = report.answer.unwrap();
    assert!(answer.contains("the same agents were chosen 3 times in a row without progress"));
}

#[tokio::test]
async fn other_calls_in_the_answer_are_not_made_and_handing_back_without_a_reason_is_refused() {
    let room = Room::in_memory(script(|asked| match (asked.role, asked.tools, asked.results) {
        ("supervisor", _, 0) => Some(decide(&["x"], &[A], json!([]))),
        ("agent", 0, _) => Some(Reply::call(NOT_MINE, json!({ "reason": " " }))),
        ("agent", _, _) => Some(
            Reply::call("append", json!({ "line": "never" }))
                .and_call(NOT_MINE, json!({ "reason": "it is beta's" })),
        ),
        _ => None,
    }))
    .await;
    let report = room.ask("Go").await;
    assert_nothing_worked(&report);
    assert!(report.results[0].not_mine);
    assert!(room.log("alpha").is_empty());
    let second = &room.agent_requests(A)[1];
    assert!(second.contains("perihelion_not_mine needs a `reason` in words"), "{second:?}");
    let names: Vec<_> = second.body["tools"].as_array().unwrap().iter().collect();
    assert_eq!(names.last().unwrap()["function"]["name"], NOT_MINE, "every agent has it");
}
