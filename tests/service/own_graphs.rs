//! Graphs that a program registers, served by its own command line: the examples, over both databases (X1, X2, X5).

use std::sync::atomic::{AtomicBool, Ordering};

use perihelion::llm::scripted::{Reply, Script};
use perihelion_database::{Database, query};
use serde_json::{Value, json};
use tokio::process::Command;

use super::crons::make_due;
use super::on_both;
use super::served::{Served, example};

on_both!(
    a_graph_is_an_assistant_with_schemas_a_drawing_threads_and_history,
    an_approval_of_a_graph_is_decided_on_the_command_line_and_paid_for_once,
    a_run_of_a_killed_process_is_continued_by_another,
    runs_of_a_graph_count_toward_the_daily_limits_of_their_tenant,
    the_stock_program_looks_after_threads_of_graphs_that_it_does_not_have,
    no_command_of_the_stock_program_damages_a_thread_of_another_graph,
    the_stock_service_shows_a_thread_of_another_graph_and_refuses_to_run_it,
    crons_and_requests_of_a_graph_that_is_gone_end_without_a_trace,
);

fn order(cents: u64) -> Value {
    json!({ "assistant_id": "order", "input": { "item": "a globe", "cents": cents } })
}

async fn orders(served: Served) -> Served {
    served.of_example("order", Script::new()).await
}

/// X11
#[tokio::test]
async fn each_example_serves_its_graph_and_drives_it() {
    for name in ["order", "research", "chat"] {
        let ended = Command::new(example(name)).output().await.unwrap();
        assert!(ended.status.success(), "{name}: {ended:?}");
    }
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
    let edges = drawing["edges"].as_array().unwrap();
    assert!(edges.contains(&edge), "{drawing}");
    // A route says where it leads.
    let routed: Vec<_> = edges.iter().filter(|edge| edge["conditional"] == true).collect();
    let ways: Vec<_> = routed.iter().map(|edge| (&edge["source"], &edge["target"])).collect();
    let check = &json!("check");
    assert_eq!(ways, [(check, &json!("pay")), (check, &json!("approve"))]);
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
    let schema = json!({ "title": "Length", "enum": ["short", "long"] });
    let asked = &waits["__interrupt__"][0];
    assert_eq!(asked["value"], json!({ "ask": "How long?", "response_schema": schema }), "{waits}");
    assert_eq!(asked["response_schema"], schema);
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

/// X11, S3.04
async fn runs_of_a_graph_count_toward_the_daily_limits_of_their_tenant(stock: Served) {
    let served = orders(stock).await;
    let (code, done) = served.post("/runs/wait", &order(5)).await;
    assert_eq!((code, &done["log"][1]), (200, &json!("paid")), "{done}");
    let limit = async |served: Served, name: &str| {
        let taken = served.again_with(&[(&format!("PERIHELION_SERVE_{name}"), "1")]).await;
        let (code, why) = taken.post("/runs/wait", &order(5)).await;
        assert_eq!(code, 429, "{name}: {why}");
        assert!(why["detail"].as_str().unwrap().contains("daily budget is used up"), "{why}");
        taken.again_with(&[(&format!("PERIHELION_SERVE_{name}"), "100")]).await
    };
    let served = limit(served, "MAX_DAILY_STEPS").await;
    let served = limit(served, "MAX_DAILY_TOOL_CALLS").await;
    let (code, done) = served.post("/runs/wait", &order(5)).await;
    assert_eq!((code, &done["log"][1]), (200, &json!("paid")), "{done}");
    let (_, me) = served.get("/v1/auth/me").await;
    let limits = me["limits"].as_array().unwrap();
    let taken =
        |name: &str| limits.iter().find(|one| one["name"] == name).unwrap()["taken"].as_u64();
    assert_eq!(taken("max_daily_tool_calls"), Some(2), "{me}");
    assert_eq!(taken("max_daily_steps"), Some(4), "{me}");
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

/// Returns what the stock program exports of a thread, line by line, without the time of the export.
async fn exported(served: &Served, thread: &str) -> String {
    let ended = served.stock(&["threads", "export", thread]).await;
    assert!(ended.status.success(), "{ended:?}");
    String::from_utf8(ended.stdout).unwrap()
}

/// X11
async fn no_command_of_the_stock_program_damages_a_thread_of_another_graph(stock: Served) {
    let served = orders(stock).await;
    let thread = served.thread().await;
    served.post(&format!("/threads/{thread}/runs/wait"), &order(5)).await;
    let (_, waits) = served.post(&format!("/threads/{thread}/runs/wait"), &order(25_000)).await;
    let question = waits["__interrupt__"][0]["id"].as_str().unwrap().to_owned();
    let before = exported(&served, &thread).await;
    let thread = thread.as_str();
    let question = question.as_str();
    for (args, words) in [
        (vec!["threads", "--json"], thread),
        (vec!["threads", "list", "--status", "interrupted"], "interrupted"),
        (vec!["threads", "show", thread], "graph    order"),
        (vec!["threads", "show", thread, "--json"], question),
        (vec!["threads", "state", thread, "--at", "1"], "a globe"),
        (vec!["threads", "history", thread], "cents"),
        (vec!["threads", "prune", "--keep", "1", "--dry-run"], "would delete 0"),
        (vec!["trace", thread], "check"),
        (vec!["trace", thread, "--run", "1"], "pay"),
        (vec!["trace", thread, "--otlp"], "check"),
        (vec!["trace", "diff", thread, thread], "run 2 of 2"),
        (vec!["diff", thread, thread], "no differences"),
        (vec!["approvals"], question),
        (vec!["approvals", "show", question], "payments.pay"),
    ] {
        let ended = served.stock(&args).await;
        let shown = String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap();
        assert!(ended.status.success() && shown.contains(words), "{args:?}: {shown}");
    }
    for args in [
        vec!["resume", thread],
        vec!["run", "--thread", thread, "hello"],
        vec!["replay", thread],
        vec!["approvals", "approve", question],
        vec!["approvals", "deny", question],
        vec!["threads", "update", thread, "--set", "cents=1"],
        vec!["threads", "prune", "--keep-steps", "1", thread, "--yes"],
    ] {
        let ended = served.stock(&args).await;
        let why = String::from_utf8(ended.stderr).unwrap();
        assert!(
            ended.status.code() == Some(2) && why.contains("the graph order"),
            "{args:?}: {why}"
        );
    }
    let fork = served.stock(&["threads", "fork", thread, "--at", "3"]).await;
    assert!(fork.status.success(), "{fork:?}");
    let fork = String::from_utf8(fork.stdout).unwrap().trim().to_owned();
    assert_eq!(exported(&served, thread).await, before);
    let resume = json!({ "assistant_id": "order", "command": { "resume": "approve" } });
    let (_, done) = served.post(&format!("/threads/{thread}/runs/wait"), &resume).await;
    assert!(done["receipt"].is_string(), "{done}");
    // The program that has the graph does what was refused, on the thread and on its fork.
    served.program(&["threads", "update", thread, "--set", "cents=7", "--as", "pay"]).await;
    let state: Value =
        serde_json::from_str(&served.program(&["threads", "state", thread]).await).unwrap();
    assert_eq!(state["state"]["cents"], 7);
    let pruned =
        served.program(&["threads", "prune", "--keep-steps", "3", "--yes", "--json"]).await;
    assert!(pruned.contains(thread) && pruned.contains("\"first_step\""), "{pruned}");
    served.program(&["threads", "prune", "--keep-steps", "2", thread, "--yes"]).await;
    let (_, done) = served.post(&format!("/threads/{fork}/runs/wait"), &order(5)).await;
    assert_eq!(done["log"].as_array().unwrap().len(), 4, "{done}");
}

/// X11
async fn the_stock_service_shows_a_thread_of_another_graph_and_refuses_to_run_it(stock: Served) {
    let served = orders(stock).await;
    let thread = served.thread().await;
    let (_, waits) = served.post(&format!("/threads/{thread}/runs/wait"), &order(25_000)).await;
    let question = waits["__interrupt__"][0]["id"].as_str().unwrap().to_owned();
    let before = exported(&served, &thread).await;
    let served = served.served_by_stock().await;
    let (code, shown) = served.get(&format!("/threads/{thread}")).await;
    assert_eq!((code, &shown["metadata"]["graph_id"]), (200, &json!("order")), "{shown}");
    let (code, runs) = served.get(&format!("/threads/{thread}/runs")).await;
    assert_eq!((code, &runs[0]["status"]), (200, &json!("success")), "{runs}");
    for route in ["trace", "export"] {
        assert_eq!(served.get(&format!("/v1/threads/{thread}/{route}")).await.0, 200);
    }
    let (_, found) = served.post("/threads/search", &json!({ "status": "interrupted" })).await;
    assert_eq!(found[0]["thread_id"], thread.as_str(), "{found}");
    let (_, waiting) = served.get("/v1/approvals").await;
    assert_eq!(waiting[0]["id"], question.as_str(), "{waiting}");
    let (_, asked) = served.get(&format!("/v1/approvals/{question}")).await;
    assert_eq!(asked, waiting[0]);
    let runs = format!("/threads/{thread}/runs");
    let ask = format!("/v1/approvals/{question}/approve");
    for (path, body, expected) in [
        (runs.clone(), json!({ "assistant_id": "swarm", "input": null }), 422),
        (runs.clone(), super::saying("x"), 409),
        (format!("/threads/{thread}/state"), json!({ "values": { "cents": 1 } }), 422),
        (ask, json!({}), 422),
    ] {
        let (code, why) = served.post(&path, &body).await;
        assert_eq!(code, expected, "{path}: {why}");
    }
    assert_eq!(exported(&served, &thread).await, before);
    let (_, copy) = served.post(&format!("/threads/{thread}/copy"), &json!({})).await;
    assert_eq!(copy["metadata"]["graph_id"], "order", "{copy}");
    let path = format!("/threads/{thread}");
    let (code, why) = served.send(reqwest::Method::DELETE, &path, &json!({})).await;
    assert_eq!(code, 204, "{why}");
}

/// X11, S3.09, S2.12
async fn crons_and_requests_of_a_graph_that_is_gone_end_without_a_trace(stock: Served) {
    let served = orders(stock).await;
    let thread = served.thread().await;
    let (_, waits) = served.post(&format!("/threads/{thread}/runs/wait"), &order(25_000)).await;
    assert!(waits["__interrupt__"].is_array(), "{waits}");
    let mut yearly = order(5);
    yearly["schedule"] = json!("0 0 1 1 *");
    let (code, cron) = served.post("/runs/crons", &yearly).await;
    assert_eq!(code, 200, "{cron}");
    let served = served.served_by_stock().await;
    let database = Database::open(&served.database()).await.unwrap().of_all_tenants();
    let past = perihelion::clock::now() - chrono::TimeDelta::hours(1);
    let expired = query("UPDATE approval_request SET expires_at = $1").bind(past);
    assert_eq!(database.execute(&expired).await.unwrap(), 1);
    database.close().await;
    let is_expired = |history: &Value| history["requests"][0]["status"] == "expired";
    served.until_got("/v1/approvals/history", is_expired).await;
    make_due(&served, &cron["cron_id"]).await;
    let next = &cron["next_run_date"];
    served.until("/runs/crons/search", &json!({}), |all| all[0]["next_run_date"] == *next).await;
    let (_, threads) = served.post("/threads/search", &json!({})).await;
    assert_eq!(threads.as_array().unwrap().len(), 1, "that of the request: {threads}");
}
