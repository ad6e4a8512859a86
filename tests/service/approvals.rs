//! Approvals over HTTP: skipped or waited for, edited, run out; and what is written down of executions (S3.09, S3.11, S3.04).

use std::time::Duration;

use chrono::TimeDelta;
use perihelion_database::{Database, query};
use serde_json::{Value, json};
use uuid::Uuid;

use super::people::{ask, id, key};
use super::served::Served;
use super::{on_both, saying};

on_both!(
    an_unattended_request_skips_calls_that_need_approval_or_waits_by_choice,
    edited_arguments_replace_the_sent_ones,
    nobodys_decision_in_time_is_a_denial_and_a_late_one_a_conflict,
    every_execution_is_written_down_once,
    data_and_trace_are_part_of_the_answer_on_request,
    a_pending_row_without_an_open_question_has_expired_at_start_up,
    metadata_and_arguments_set_the_request_fields_in_every_api,
    an_answer_that_waits_for_its_turn_decides_no_call_without_the_scope,
    a_damaged_thread_hides_no_approval_of_another_one,
    a_request_that_was_approved_in_time_does_not_expire_while_its_run_waits,
    a_request_of_a_run_on_the_command_line_is_in_the_history_once_it_is_decided,
);

/// How long something may take that is to happen at all.
const PATIENCE: Duration = Duration::from_secs(60);

/// S3.11
async fn an_unattended_request_skips_calls_that_need_approval_or_waits_by_choice(served: Served) {
    // Nothing else was to be done, so that the run failed, and says why.
    let skipping = |words: &Value| {
        let why = words["__error__"]["message"].as_str().unwrap_or_default();
        assert!(why.contains("notes.append_note needs a person's approval"), "{words}");
    };
    let asked = saying("approve this");
    let mut skip = asked.clone();
    skip["approvals"] = json!("skip");
    let (_, waits) = served.post("/runs/wait", &asked).await;
    assert!(waits["__interrupt__"].is_array(), "{waits}");
    let (_, words) = served.post("/runs/wait", &skip).await;
    assert!(words["__interrupt__"].is_null(), "{words}");
    skipping(&words);
    let header = [("x-perihelion-approvals", "skip")];
    let (_, words) = ask(&served, "POST", "/runs/wait", &header, Some(asked.clone())).await;
    skipping(&words);
    let mut wrong = asked.clone();
    wrong["approvals"] = json!("perhaps");
    assert_eq!(served.post("/runs/wait", &wrong).await.0, 422);
    let served = served.again_with(&[("PERIHELION_SERVE_APPROVALS", "skip")]).await;
    let (_, words) = served.post("/runs/wait", &asked).await;
    skipping(&words);
    let mut wait = asked.clone();
    wait["approvals"] = json!("wait");
    let (_, waits) = served.post("/runs/wait", &wait).await;
    assert!(waits["__interrupt__"].is_array(), "{waits}");
    assert_eq!(served.read("notes.jsonl"), "");
}

async fn waiting(served: &Served, how: &str) -> (String, String) {
    let thread = served.thread().await;
    let run = format!("{}/threads/{thread}/runs/{how}", served.url);
    let mut body = saying("approve this");
    body["stream_mode"] = json!(["custom"]);
    let asked = served.http.post(run).header("content-type", "application/json");
    let answer = asked.body(body.to_string()).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    (thread, answer.text().await.unwrap())
}

/// S3.09
async fn edited_arguments_replace_the_sent_ones(served: Served) {
    let (thread, _) = waiting(&served, "wait").await;
    let (_, listed) = served.get("/v1/approvals").await;
    let approve = format!("/v1/approvals/{}/approve", listed[0]["id"].as_str().unwrap());
    let (code, words) = served.post(&approve, &json!({ "arguments": { "text": "mine" } })).await;
    assert_eq!(code, 200, "{words}");
    let run = words["run_id"].as_str().unwrap();
    served.get(&format!("/threads/{thread}/runs/{run}/join")).await;
    let notes = served.read("notes.jsonl");
    assert!(notes.contains("mine") && !notes.contains("remember"), "{notes}");
    let (_, history) = served.get("/v1/approvals/history").await;
    assert_eq!(history["requests"][0]["status"], "approved", "{history}");
}

/// S3.09
async fn nobodys_decision_in_time_is_a_denial_and_a_late_one_a_conflict(served: Served) {
    let soon = [("PERIHELION_TRUST_INTERACTIVE_APPROVAL_TIMEOUT_SEC", "0.2")];
    let served = served.again_with(&soon).await;
    let (thread, stream) = waiting(&served, "stream").await;
    assert!(stream.contains("hitl_required"), "{stream}");
    let ended = async {
        loop {
            let (_, state) = served.get(&format!("/threads/{thread}/state")).await;
            if state["values"]["answer"].is_string() {
                return state;
            }
            tokio::task::yield_now().await;
        }
    };
    let state = tokio::time::timeout(PATIENCE, ended).await.unwrap();
    assert_eq!(state["values"]["answer"], "Hello from the star.");
    assert_eq!(served.read("notes.jsonl"), "", "nothing was sent");
    // Who follows the thread hears of it, too; the state may be there before the last events are.
    let reported = async {
        loop {
            let (_, runs) = served.get(&format!("/threads/{thread}/runs")).await;
            for run in runs.as_array().unwrap() {
                let stream =
                    format!("/threads/{thread}/runs/{}/stream", run["run_id"].as_str().unwrap());
                let asked = served.http.get(format!("{}{stream}?stream_mode=custom", served.url));
                let answer = asked.header("last-event-id", "-1").send().await.unwrap();
                if answer.text().await.unwrap().contains("hitl_timeout") {
                    return;
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, reported).await.unwrap();
    let (_, history) = served.get("/v1/approvals/history").await;
    let one = &history["requests"][0];
    assert_eq!((&one["status"], &one["decided_by"]), (&json!("timed_out"), &Value::Null));
    let late = format!("/v1/approvals/{}/approve", one["id"].as_str().unwrap());
    assert_eq!(served.post(&late, &json!({})).await.0, 409);
    let (_, audit) = served.get(&format!("/v1/audit?thread={thread}")).await;
    let actions: Vec<&str> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["action"].as_str())
        .collect();
    assert!(actions.contains(&"approval.timed_out"), "{actions:?}");
}

/// S3.04
async fn every_execution_is_written_down_once(served: Served) {
    let mut body = saying("approve this");
    body["approvals"] = json!("skip");
    let thread = served.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    for _ in 0..2 {
        served.post(&wait, &body).await;
    }
    let (_, audit) = served.get(&format!("/v1/audit?thread={thread}")).await;
    let entries = audit["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "{audit}");
    for entry in entries {
        assert_eq!(entry["action"], "agent.executed");
        assert_eq!(entry["details"]["error"], "ApprovalRequired");
        assert!(entry["details"]["usage"]["input_tokens"].is_u64(), "{entry}");
    }
}

/// S2.01, S2.09
async fn data_and_trace_are_part_of_the_answer_on_request(served: Served) {
    let thread = served.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    let ask = |more: Value| {
        let mut input = json!({ "question": "hello" });
        input.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        json!({ "assistant_id": "swarm", "input": input })
    };
    let (_, plain) = served.post(&wait, &ask(json!({}))).await;
    assert!(plain.get("data").is_none() && plain.get("trace").is_none(), "{plain}");
    let (_, more) = served.post(&wait, &ask(json!({ "include_data": true, "trace": true }))).await;
    assert_eq!(more["data"], Value::Null, "nothing was found");
    assert!(!more["trace"].as_array().unwrap().is_empty(), "{more}");
    let (code, report) = served.get(&format!("/v1/threads/{thread}/report?trace=true")).await;
    assert_eq!(code, 200, "{report}");
    for key in ["status", "answer", "data", "results", "planner", "metadata", "usage", "trace"] {
        assert!(report.get(key).is_some(), "{key}: {report}");
    }
    assert_eq!((&report["status"], &report["metadata"]["turn"]), (&json!("done"), &json!(2)));
}

/// S3.09
async fn a_pending_row_without_an_open_question_has_expired_at_start_up(mut served: Served) {
    let thread = served.thread().await;
    let (waits, _) = waiting(&served, "wait").await;
    served.crash().await;
    let database = Database::open(&served.database()).await.unwrap().of_tenant("default");
    let now = perihelion::clock::now();
    let insert = "INSERT INTO approval_request (id, tenant, thread_id, agent, tool, status, asked_at, expires_at) \
                  VALUES ($1, 'default', $2, 'mcp_agent_notes', 'notes.append_note', 'pending', $3, $4)";
    let thread: Uuid = thread.parse().unwrap();
    // It runs out in an hour: only that it is not asked says that it is over.
    let stale = query(insert).bind(Uuid::now_v7()).bind(thread);
    let stale = stale.bind(now - TimeDelta::hours(1)).bind(now + TimeDelta::hours(1));
    assert_eq!(database.execute(&stale).await.unwrap(), 1);
    database.close().await;
    served.start_again().await;
    let row = |history: &Value, thread: &str| {
        let all = history["requests"].as_array().unwrap();
        all.iter().find(|one| one["thread"] == thread).unwrap()["status"].clone()
    };
    let over = async {
        loop {
            let (_, history) = served.get("/v1/approvals/history").await;
            if row(&history, &thread.to_string()) == "expired" {
                return history;
            }
            perihelion::clock::sleep(Duration::from_millis(10)).await;
        }
    };
    let history = tokio::time::timeout(PATIENCE, over).await.unwrap();
    assert_eq!(row(&history, &waits), "pending", "what is asked stays: {history}");
}

/// S2.01: context, agents, turns and wishes reach the supervisor; `trace` comes with the answer.
async fn metadata_and_arguments_set_the_request_fields_in_every_api(served: Served) {
    let typed = json!({
        "context": { "tier": "platinum" }, "disable_agents": ["diary"], "prefer_agents": ["notes"], "max_turns": 3,
        "system_prompt": "Rhyme everything.", "trace": true, "include_data": true,
    });
    let texts = json!({
        "context": "{\"tier\": \"platinum\"}", "disable_agents": "diary", "prefer_agents": "notes", "max_turns": "3",
        "system_prompt": "Rhyme everything.", "trace": "true", "include_data": "true",
    });
    let message = json!({
        "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }], "metadata": typed },
    });
    let mut arguments = typed.clone();
    arguments["question"] = json!("hello");
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "swarm", "arguments": arguments },
    });
    let chat = json!({
        "model": "swarm", "messages": [{ "role": "user", "content": "hello" }], "metadata": texts,
    });
    let responses = json!({ "model": "swarm", "input": "hello", "metadata": texts });
    let version = ("a2a-version", "1.0");
    let accept = ("accept", "application/json, text/event-stream");
    for (path, header, body, place) in [
        ("/v1/responses", version, responses, "/trace"),
        ("/v1/chat/completions", version, chat, "/trace"),
        ("/a2a/message:send", version, message, "/task/metadata/trace"),
        ("/mcp", accept, call, "/result/structuredContent/trace"),
    ] {
        let before = served.model.requests().len();
        let asked = served.http.post(format!("{}{path}", served.url)).header(header.0, header.1);
        let asked = asked.header("content-type", "application/json").body(body.to_string());
        let text = asked.send().await.unwrap().text().await.unwrap();
        let json = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
        let words: Value = serde_json::from_str(json).unwrap_or_else(|_| panic!("{path}: {text}"));
        let trace = words.pointer(place).unwrap_or_else(|| panic!("{path}: {words}"));
        assert!(trace.as_array().is_some_and(|all| !all.is_empty()), "{path}: {words}");
        let requests = served.model.requests();
        let decision = requests[before..].iter().find(|one| one.role == "supervisor").unwrap();
        for word in ["platinum", "Rhyme everything."] {
            assert!(decision.contains(word), "{path} lacks {word}");
        }
        assert!(!decision.contains("- mcp_agent_diary"), "{path}: a disabled agent is offered");
    }
    for (path, body) in [
        (
            "/v1/responses",
            json!({ "model": "swarm", "input": "x", "metadata": { "max_turns": "many" } }),
        ),
        (
            "/v1/responses",
            json!({ "model": "swarm", "input": "x", "metadata": { "prefer_agents": "nobody" } }),
        ),
    ] {
        let (code, why) = served.post(path, &body).await;
        assert_eq!(code, 400, "{why}");
    }
}

/// S3.04, S3.09: the request for approval is newer than the answer.
async fn an_answer_that_waits_for_its_turn_decides_no_call_without_the_scope(served: Served) {
    let boss = key(&served, &["boss", "--scopes", "read,run,approve"]).await;
    let worker = key(&served, &["worker", "--scopes", "read,run"]).await;
    for (secret, ends) in [(&worker, "error"), (&boss, "success")] {
        let who = [("x-api-key", secret.as_str())];
        let thread = id(&ask(&served, "POST", "/threads", &who, Some(json!({}))).await);
        let runs = format!("/threads/{thread}/runs");
        let resume = json!({ "assistant_id": "swarm", "command": { "resume": "approve" } });
        let mut begun = Vec::new();
        for body in [saying("hang"), saying("approve this"), resume] {
            let before = served.model.requests().len();
            let (code, run) = ask(&served, "POST", &runs, &who, Some(body)).await;
            assert_eq!(code, 200, "{run}");
            if begun.is_empty() {
                served.model.wait_for_requests(before + 1).await;
            }
            begun.push(format!("{runs}/{}", run["run_id"].as_str().unwrap()));
        }
        let cancel = format!("{}/cancel?wait=true", begun[0]);
        ask(&served, "POST", &cancel, &who, Some(json!({}))).await;
        ask(&served, "GET", &format!("{}/join", begun[2]), &who, None).await;
        let (_, run) = ask(&served, "GET", &begun[2], &who, None).await;
        let is_sent = !served.read("notes.jsonl").is_empty();
        assert_eq!((run["status"].as_str(), is_sent), (Some(ends), ends == "success"), "{run}");
    }
}

/// S3.09
async fn a_damaged_thread_hides_no_approval_of_another_one(served: Served) {
    let (damaged, _) = waiting(&served, "wait").await;
    let (whole, _) = waiting(&served, "wait").await;
    let database = Database::open(&served.database()).await.unwrap().of_tenant("default");
    let damage = query("UPDATE step SET delta = hash WHERE thread_id = $1");
    let damage = damage.bind(damaged.parse::<Uuid>().unwrap());
    assert!(database.execute(&damage).await.unwrap() > 0);
    database.close().await;
    let listed = served.program(&["approvals", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["thread_id"]), (1, &json!(whole)));
    served.program(&["approvals", "approve", listed[0]["id"].as_str().unwrap(), "-q"]).await;
    assert!(served.read("notes.jsonl").contains("remember"));
}

/// S3.09
async fn a_request_that_was_approved_in_time_does_not_expire_while_its_run_waits(served: Served) {
    let (thread, _) = waiting(&served, "wait").await;
    let runs = format!("/threads/{thread}/runs");
    let mut later = saying("hello");
    later["after_seconds"] = json!(3_600);
    let (_, busy) = served.post(&runs, &later).await;
    let busy: Uuid = busy["run_id"].as_str().unwrap().parse().unwrap();
    let database = Database::open(&served.database()).await.unwrap().of_tenant("default");
    let now = perihelion::clock::now();
    let begun = "UPDATE service_run SET status = 'running', attempt = 1, base_step = 0, first_event = 0, \
                 owner = 'elsewhere', seen_at = $2 WHERE id = $1";
    let begun = query(begun).bind(busy).bind(now + TimeDelta::hours(1));
    assert_eq!(database.execute(&begun).await.unwrap(), 1);
    let (_, listed) = served.get("/v1/approvals").await;
    let approve = format!("/v1/approvals/{}/approve", listed[0]["id"].as_str().unwrap());
    let (code, run) = served.post(&approve, &json!({})).await;
    assert_eq!(code, 200, "{run}");
    let late = query("UPDATE approval_request SET expires_at = $1");
    let late = late.bind(now - TimeDelta::minutes(2));
    assert_eq!(database.execute(&late).await.unwrap(), 1);
    // It is looked at a few times.
    perihelion::clock::sleep(Duration::from_secs(2)).await;
    let (_, history) = served.get("/v1/approvals/history").await;
    assert_eq!(history["requests"][0]["status"], "pending", "{history}");
    let ended = query("UPDATE service_run SET status = 'success', owner = NULL WHERE id = $1");
    assert_eq!(database.execute(&ended.bind(busy)).await.unwrap(), 1);
    database.close().await;
    served.get(&format!("{runs}/{}/join", run["run_id"].as_str().unwrap())).await;
    let (_, history) = served.get("/v1/approvals/history").await;
    assert_eq!(history["requests"][0]["status"], "approved", "{history}");
    assert!(served.read("notes.jsonl").contains("remember"));
}

/// S3.09: the service has no row for it before.
async fn a_request_of_a_run_on_the_command_line_is_in_the_history_once_it_is_decided(
    served: Served,
) {
    for (name, status) in [("over-http", "approved"), ("at-home", "denied")] {
        let run = ["run", "approve this", "--thread", name, "--json", "-q"];
        let asked = served.command(&run).output().await.unwrap();
        assert_eq!(asked.status.code(), Some(3), "{asked:?}");
        let report: Value = serde_json::from_slice(&asked.stdout).unwrap();
        let id = report["interrupts"][0]["id"].as_str().unwrap();
        if status == "approved" {
            let approve = format!("/v1/approvals/{id}/approve");
            assert_eq!(served.post(&approve, &json!({})).await.0, 200);
        } else {
            let deny = ["resume", name, "--deny", "-q"];
            served.command(&deny).output().await.unwrap();
        }
        let is_decided = |history: &Value| {
            let all = history["requests"].as_array().unwrap();
            let one = all.iter().find(|one| one["id"] == id);
            one.is_some_and(|one| {
                let call = (&one["tool"], &one["agent"], &one["thread"]);
                let thread = &report["thread_id"];
                assert_eq!(call, (&"notes.append_note".into(), &"mcp_agent_notes".into(), thread));
                one["status"] == status && one["decided_by"].is_string()
            })
        };
        served.until_got("/v1/approvals/history", is_decided).await;
    }
}
