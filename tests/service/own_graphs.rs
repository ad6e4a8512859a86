//! Graphs that a program registers, served by its own command line: the examples, over both databases (X1, X2, X5).

use std::sync::atomic::{AtomicBool, Ordering};

use perihelion::llm::scripted::{Reply, Script};
use serde_json::{Value, json};

use super::on_both;
use super::served::Served;

on_both!(
    a_graph_is_an_assistant_with_schemas_a_drawing_threads_and_history,
    an_approval_of_a_graph_is_decided_on_the_command_line_and_paid_for_once,
    a_run_of_a_killed_process_is_continued_by_another,
    the_stock_program_looks_after_threads_of_graphs_that_it_does_not_have,
);

fn order(cents: u64) -> Value {
    json!({ "assistant_id": "order", "input": { "item": "a globe", "cents": cents } })
}

async fn orders(served: Served) -> Served {
    served.of_example("order", Script::new()).await
}

/// X11
async fn a_graph_is_an_assistant_with_schemas_a_drawing_threads_and_history(stock: Served) {
    let served = orders(stock).await;
    let (_, found) = served.post("/assistants/search", &json!({ "graph_id": "order" })).await;
    assert_eq!(found[0]["description"], "Orders one thing and pays for it", "{found}");
    let id = found[0]["assistant_id"].as_str().unwrap();
    let (_, schemas) = served.get(&format!("/assistants/{id}/schemas")).await;
    assert_eq!(schemas["input_schema"]["required"], json!(["item", "cents"]), "{schemas}");
    let (_, drawing) = served.get("/assistants/order/graph").await;
    let edge = json!({ "source": "approve", "target": "pay" });
    assert!(drawing["edges"].as_array().unwrap().contains(&edge), "{drawing}");
    let (code, refused) = served
        .post("/runs/wait", &json!({ "assistant_id": "order", "input": { "item": 7 } }))
        .await;
    assert_eq!(code, 422, "{refused}");

    let thread = served.thread().await;
    let (_, done) = served.post(&format!("/threads/{thread}/runs/wait"), &order(5)).await;
    assert_eq!(done["log"], json!(["a globe for 5 cents", "paid"]), "{done}");
    let (_, shown) = served.get(&format!("/threads/{thread}")).await;
    assert_eq!(
        (&shown["status"], &shown["metadata"]["graph_id"]),
        (&json!("idle"), &json!("order"))
    );
    // Edits go through the reducers: a list is added to, a number replaced.
    let edit = json!({ "values": { "cents": 6, "log": ["corrected"] }, "as_node": "pay" });
    let (code, edited) = served.post(&format!("/threads/{thread}/state"), &edit).await;
    assert_eq!(code, 200, "{edited}");
    let (_, state) = served.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(state["values"]["log"], json!(["a globe for 5 cents", "paid", "corrected"]));
    assert_eq!(state["values"]["cents"], 6);
    let (_, history) = served.get(&format!("/threads/{thread}/history")).await;
    assert_eq!(history.as_array().unwrap().len(), 4, "{history}");
    let edit = json!({ "values": { "no_such_field": 1 } });
    assert_eq!(served.post(&format!("/threads/{thread}/state"), &edit).await.0, 422);
    // The thread stays with its graph.
    let (code, other) =
        served.post(&format!("/threads/{thread}/runs/wait"), &super::saying("x")).await;
    assert!(code >= 400, "{other}");
}

/// X11
async fn an_approval_of_a_graph_is_decided_on_the_command_line_and_paid_for_once(stock: Served) {
    let served = orders(stock).await;
    let thread = served.thread().await;
    let (_, waits) = served.post(&format!("/threads/{thread}/runs/wait"), &order(25_000)).await;
    let asked = &waits["__interrupt__"][0]["value"]["action_requests"][0];
    assert_eq!((&asked["name"], &asked["args"]["cents"]), (&json!("payments.pay"), &json!(25_000)));
    let listed: Value =
        serde_json::from_str(&served.program(&["approvals", "--json"]).await).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    served.program(&["approvals", "approve", id, "-q"]).await;
    let state: Value =
        serde_json::from_str(&served.program(&["threads", "state", &thread]).await).unwrap();
    assert_eq!(state["state"]["log"], json!(["a globe for 25000 cents", "approved", "paid"]));
    let replayed = served.program(&["replay", &thread]).await;
    assert!(replayed.contains("each committed the same bytes"), "{replayed}");
    let trace = served.program(&["trace", &thread]).await;
    assert!(trace.contains("pay"), "{trace}");
}

/// X11
async fn a_run_of_a_killed_process_is_continued_by_another(stock: Served) {
    // The first answer never comes: the process that waits for it is killed.
    let is_first = AtomicBool::new(true);
    let script = Script::new().respond_with(move |_| {
        let hangs = is_first.swap(false, Ordering::SeqCst);
        Some(if hangs { Reply::hang() } else { Reply::text("It moves.") })
    });
    let mut served = stock.of_example("research", script).await;
    let thread = served.thread().await;
    let input = json!({ "topic": "earth", "sources": ["Bruno", "Kepler"] });
    let asks = json!({ "assistant_id": "research", "input": input });
    let (_, waits) = served.post(&format!("/threads/{thread}/runs/wait"), &asks).await;
    let value = json!({ "ask": "How long?", "options": ["short", "long"] });
    assert_eq!(waits["__interrupt__"][0]["value"], value, "{waits}");
    // Killed while a person is asked, and while the model is.
    served.crash_and_start_again().await;
    let resume = json!({ "assistant_id": "research", "command": { "resume": "short" } });
    let (_, run) = served.post(&format!("/threads/{thread}/runs"), &resume).await;
    served.model.wait_for_requests(1).await;
    served.crash_and_start_again().await;
    let id = run["run_id"].as_str().unwrap();
    let (_, done) = served.get(&format!("/threads/{thread}/runs/{id}/join")).await;
    assert_eq!(
        (&done["report"], &done["length"]),
        (&json!("It moves."), &json!("short")),
        "{done}"
    );
    assert_eq!(done["findings"], json!(["Bruno says it moves", "Kepler says it moves"]));
    assert_eq!(served.model.requests().len(), 2);
}

/// X11
async fn the_stock_program_looks_after_threads_of_graphs_that_it_does_not_have(stock: Served) {
    let served = orders(stock).await;
    let thread = served.thread().await;
    let (_, waits) = served.post(&format!("/threads/{thread}/runs/wait"), &order(25_000)).await;
    assert!(waits["__interrupt__"].is_array(), "{waits}");
    for args in [
        vec!["threads", "list"],
        vec!["threads", "show", &thread],
        vec!["threads", "state", &thread],
        vec!["threads", "history", &thread],
        vec!["trace", &thread],
        vec!["threads", "export", &thread, "--output", "order.jsonl"],
    ] {
        let ended = served.stock(&args).await;
        assert!(ended.status.success(), "{args:?}: {ended:?}");
    }
    for args in [vec!["resume", &thread, "--approve"], vec!["replay", &thread]] {
        let ended = served.stock(&args).await;
        let why = String::from_utf8(ended.stderr).unwrap();
        assert!(!ended.status.success() && why.contains("order"), "{args:?}: {why}");
    }
    // It was not damaged: its own program continues with it.
    let resume = json!({ "assistant_id": "order", "command": { "resume": "approve" } });
    let (_, done) = served.post(&format!("/threads/{thread}/runs/wait"), &resume).await;
    assert!(done["receipt"].is_string(), "{done}");
    assert!(served.stock(&["threads", "delete", &thread, "--yes"]).await.status.success());
    let ended = served.stock(&["threads", "import", "order.jsonl"]).await;
    assert!(ended.status.success(), "{ended:?}");
    let (_, state) = served.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(state["values"]["cents"], 25_000, "{state}");
}
