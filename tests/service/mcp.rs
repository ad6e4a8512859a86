//! The service's own MCP server as its clients use it: calls are cancelled and followed, malformed messages answered (X8).

use std::time::Duration;

use perihelion_database::{Database, query};
use serde_json::{Value, json};
use uuid::Uuid;

use super::on_both;
use super::served::Served;

/// How long something may take that is to happen at all.
const PATIENCE: Duration = Duration::from_secs(60);

on_both!(
    a_call_that_is_cancelled_stops_its_run,
    a_client_that_sends_a_token_receives_progress,
    a_malformed_message_is_answered_by_an_error_of_json_rpc,
    a_call_is_cancelled_after_a_thousand_other_runs,
);

fn call(id: u32, question: &str, meta: &Value) -> Value {
    let params = json!({ "name": "swarm", "arguments": { "question": question }, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// Posts a body as a client with a session does.
fn posted(served: &Served, session: Option<&str>, body: &str) -> reqwest::RequestBuilder {
    let asked = served.http.post(format!("{}/mcp", served.url));
    let asked = asked.header("accept", "application/json, text/event-stream");
    let asked = asked.header("content-type", "application/json").body(body.to_owned());
    match session {
        Some(session) => asked.header("mcp-session-id", session),
        None => asked,
    }
}

/// Begins a session and returns its name.
async fn session(served: &Served) -> String {
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    });
    let begin = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let answer = posted(served, None, &begin.to_string()).send().await.unwrap();
    answer.headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

/// X8
async fn a_call_that_is_cancelled_stops_its_run(served: Served) {
    let mine = session(&served).await;
    let other = session(&served).await;
    assert_ne!(mine, other);
    let before = served.model.requests().len();
    let asked = posted(&served, Some(&mine), &call(7, "hang", &json!({})).to_string());
    let waits = tokio::spawn(async move { asked.send().await.unwrap().text().await.unwrap() });
    served.model.wait_for_requests(before + 1).await;
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    for (session, is_over) in [(&other, false), (&mine, true)] {
        let answer = posted(&served, Some(session), &cancelled.to_string()).send().await.unwrap();
        assert_eq!(answer.status(), 202);
        let threads = json!({ "limit": 1 });
        let busy = served.post("/threads/search", &threads).await.1[0]["status"] == "busy";
        assert!(busy || is_over, "another client's call is not its own");
    }
    let answer = waits.await.unwrap();
    assert!(answer.contains("the run was cancelled"), "{answer}");
    let is_free = |found: &Value| found[0]["status"] != "busy";
    let found = served.until("/threads/search", &json!({ "limit": 1 }), is_free).await;
    let thread = found[0]["thread_id"].as_str().unwrap();
    let (_, runs) = served.get(&format!("/threads/{thread}/runs")).await;
    assert_eq!(runs[0]["status"], "interrupted", "{runs}");
}

/// X8
async fn a_client_that_sends_a_token_receives_progress(served: Served) {
    let mine = session(&served).await;
    for (meta, is_sent) in [(json!({ "progressToken": "p-1" }), true), (json!({}), false)] {
        let asked = posted(&served, Some(&mine), &call(1, "hello", &meta).to_string());
        let text = asked.send().await.unwrap().text().await.unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let messages: Vec<Value> =
            lines.filter_map(|line| serde_json::from_str(line.trim()).ok()).collect();
        let reports: Vec<&Value> =
            messages.iter().filter(|one| one["method"] == "notifications/progress").collect();
        assert_eq!(!reports.is_empty(), is_sent, "{text}");
        assert!(reports.iter().all(|one| one["params"]["progressToken"] == "p-1"), "{text}");
        let grows = reports.windows(2).all(|two| {
            two[0]["params"]["progress"].as_f64() < two[1]["params"]["progress"].as_f64()
        });
        assert!(grows, "{text}");
        let last = messages.last().unwrap();
        assert_eq!(last["result"]["structuredContent"]["answer"], "Hello from the star.", "{text}");
    }
}

/// X8
async fn a_malformed_message_is_answered_by_an_error_of_json_rpc(served: Served) {
    for (body, id, code) in [
        ("{\"jsonrpc\":", Value::Null, -32700),
        ("[1]", Value::Null, -32600),
        (r#"{"id":1,"method":"ping"}"#, json!(1), -32600),
        (r#"{"jsonrpc":"2.0","id":2}"#, json!(2), -32600),
        (r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":7}}"#, json!(3), -32602),
    ] {
        let answer = posted(&served, None, body).send().await.unwrap();
        assert_eq!(answer.status(), 400, "{body}");
        let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.starts_with("application/json"), "{body}: {kind}");
        let found: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert_eq!(
            (&found["jsonrpc"], &found["id"], &found["error"]["code"]),
            (&json!("2.0"), &id, &json!(code)),
            "{body}: {found}"
        );
    }
    let unknown = served.mcp("nothing/known", json!({})).await;
    assert_eq!(unknown["code"], -32601, "{unknown}");
}

/// X8
async fn a_call_is_cancelled_after_a_thousand_other_runs(served: Served) {
    let mine = session(&served).await;
    let mut body = super::saying("hello");
    body["on_completion"] = json!("keep");
    let (_, other) = served.post("/runs", &body).await;
    let runs = format!("/threads/{}/runs", other["thread_id"].as_str().unwrap());
    served.get(&format!("{runs}/{}/join", other["run_id"].as_str().unwrap())).await;
    let before = served.model.requests().len();
    let asked = posted(&served, Some(&mine), &call(7, "hang", &json!({})).to_string());
    let waits = tokio::spawn(async move { asked.send().await.unwrap().text().await.unwrap() });
    served.model.wait_for_requests(before + 1).await;
    let database = Database::open(&served.database()).await.unwrap().of_all_tenants();
    let mut transaction = database.begin().await.unwrap();
    let original: Uuid = other["run_id"].as_str().unwrap().parse().unwrap();
    for _ in 0..1_100 {
        // They changed after the call began.
        let copy = query(
            "INSERT INTO service_run (id, thread_id, assistant, tenant, status, multitask, kwargs, metadata, temporary, \
                attempt, due_at, created_at, updated_at) \
             SELECT $1, thread_id, assistant, tenant, status, multitask, kwargs, metadata, temporary, attempt, due_at, \
                created_at, $2 FROM service_run WHERE id = $3",
        );
        let now = perihelion::clock::now();
        transaction.execute(&copy.binds((Uuid::now_v7(), now, original))).await.unwrap();
    }
    transaction.commit().await.unwrap();
    database.close().await;
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    let answer = posted(&served, Some(&mine), &cancelled.to_string()).send().await.unwrap();
    assert_eq!(answer.status(), 202);
    let answer = tokio::time::timeout(PATIENCE, waits).await.unwrap().unwrap();
    assert!(answer.contains("the run was cancelled"), "{answer}");
}
