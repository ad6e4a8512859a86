//! Runs that pause before or after nodes, and the stream of a whole thread (S2.12).

use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};
use sqlx::Connection as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::served::Served;
use super::{on_both, saying};

on_both!(
    a_run_pauses_at_the_requested_nodes_and_continues_with_no_input_or_a_command,
    a_thread_and_its_newest_state_are_shown_alike_before_each_node,
    a_state_that_is_edited_at_a_pause_is_run_on_from_there,
    messages_on_two_branches_of_a_thread_have_separate_ids,
    a_thread_s_stream_has_the_events_of_all_its_runs_once,
    the_stream_of_a_thread_reports_edits_as_they_happen,
);

fn pausing(mut body: Value, when: &str, nodes: Value) -> Value {
    body[when] = nodes;
    body
}

/// S2.12
async fn a_run_pauses_at_the_requested_nodes_and_continues_with_no_input_or_a_command(
    served: Served,
) {
    let unchanged = || json!({ "assistant_id": "swarm", "input": null });
    let command = || json!({ "assistant_id": "swarm", "command": { "resume": "continue" } });
    for continued in [unchanged(), command()] {
        let thread = served.thread().await;
        let at = |path: &str| format!("/threads/{thread}{path}");
        let before = pausing(saying("hello"), "interrupt_before", json!(["qa"]));
        let (code, left) = served.post(&at("/runs/wait"), &before).await;
        assert_eq!((code, &left["answer"]), (200, &Value::Null), "{left}");
        let (_, runs) = served.get(&at("/runs")).await;
        assert_eq!(runs[0]["status"], "success");
        assert_eq!(runs[0]["kwargs"]["interrupt_before"], json!(["qa"]));
        let (_, there) = served.get(&at("")).await;
        assert_eq!(there["status"], "interrupted");
        let (_, state) = served.get(&at("/state")).await;
        assert_eq!(state["next"], json!(["qa"]));
        assert_eq!(state["tasks"][0]["interrupts"], json!([]));
        let (_, done) = served.post(&at("/runs/wait"), &continued).await;
        assert_eq!(done["answer"], "Hello from the star.", "{done}");
        assert_eq!(served.get(&at("")).await.1["status"], "idle");
    }
    // A new message to a thread that pauses begins a new turn, which pauses as well.
    let thread = served.thread().await;
    let path = format!("/threads/{thread}/runs/wait");
    let all = pausing(saying("hello"), "interrupt_after", json!("*"));
    served.post(&path, &all).await;
    let (_, state) = served.get(&format!("/threads/{thread}/state")).await;
    assert_eq!((&state["values"]["turn"], &state["next"]), (&json!(1), &json!(["supervisor"])));
    served.post(&path, &pausing(saying("hello"), "interrupt_before", json!("*"))).await;
    let (_, state) = served.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(state["next"], json!(["preprocess"]), "{state}");
    let stream = format!("/threads/{thread}/runs/stream");
    let mut body = pausing(unchanged(), "interrupt_after", json!(["preprocess"]));
    body["stream_mode"] = json!(["updates", "values"]);
    let asked = served.http.post(format!("{}{stream}", served.url));
    let answer = asked.header("content-type", "application/json").body(body.to_string());
    let text = answer.send().await.unwrap().text().await.unwrap();
    assert!(text.contains("data: {\"__interrupt__\":[]}"), "{text}");
    let (_, done) = served.post(&path, &unchanged()).await;
    assert_eq!((&done["answer"], &done["turn"]), (&json!("Hello from the star."), &json!(2)));
}

async fn a_thread_and_its_newest_state_are_shown_alike_before_each_node(served: Served) {
    let thread = served.thread().await;
    let path = format!("/threads/{thread}/runs/wait");
    served.post(&path, &saying("hello")).await;
    let mut body = saying("hello again");
    for node in ["preprocess", "supervisor", "qa"] {
        served.post(&path, &pausing(body, "interrupt_before", json!("*"))).await;
        let (_, there) = served.get(&format!("/threads/{thread}")).await;
        let (_, state) = served.get(&format!("/threads/{thread}/state")).await;
        assert_eq!((&there["values"], &state["next"]), (&state["values"], &json!([node])));
        let shown = there["values"]["messages"].as_array().unwrap();
        assert_eq!((shown.len(), &shown[2]["content"]), (3, &json!("hello again")));
        body = json!({ "assistant_id": "swarm", "input": null });
    }
}

/// X5: the plan is corrected before it is carried out, and the run continues where it paused.
async fn a_state_that_is_edited_at_a_pause_is_run_on_from_there(served: Served) {
    let thread = served.thread().await;
    let at = |path: &str| format!("/threads/{thread}{path}");
    let before = pausing(saying("hello"), "interrupt_before", json!(["qa"]));
    served.post(&at("/runs/wait"), &before).await;
    let edit = json!({ "values": { "plan": ["mine"] } });
    let (code, edited) = served.post(&at("/state"), &edit).await;
    assert_eq!(code, 200, "{edited}");
    let (_, state) = served.get(&at("/state")).await;
    assert_eq!((&state["next"], &state["values"]["plan"]), (&json!(["qa"]), &json!(["mine"])));
    assert_eq!(served.get(&at("")).await.1["status"], "interrupted");
    let unchanged = json!({ "assistant_id": "swarm", "input": null });
    let (_, done) = served.post(&at("/runs/wait"), &unchanged).await;
    assert_eq!(
        (&done["answer"], &done["plan"]),
        (&json!("Hello from the star."), &json!(["mine"]))
    );
}

/// X5: a worker would run a thread that is left with half of an edit.
#[tokio::test]
async fn an_edit_ends_without_its_client_and_nothing_is_run() {
    let served = Served::postgres().await;
    let thread = served.thread().await;
    let at = |path: &str| format!("/threads/{thread}{path}");
    let nodes = json!(["mcp_agent_notes"]);
    let before = pausing(saying("approve this"), "interrupt_before", nodes.clone());
    served.post(&at("/runs/wait"), &before).await;
    let asked = served.model.requests().len();
    let mut gate = sqlx::PgConnection::connect(&served.database()).await.unwrap();
    for statement in [
        "CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
            PERFORM pg_advisory_xact_lock(7); RETURN NEW; END $$",
        "CREATE TRIGGER gate BEFORE INSERT ON step FOR EACH ROW WHEN (NEW.kind = 'edit') EXECUTE FUNCTION gate()",
        "SELECT pg_advisory_lock(7)",
    ] {
        sqlx::raw_sql(statement).execute(&mut gate).await.unwrap();
    }
    let body = json!({ "values": { "plan": ["mine"] } }).to_string();
    let path = at("/state");
    let host = served.url.strip_prefix("http://").unwrap();
    let head = format!("POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json");
    let edit = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let mut client = TcpStream::connect(host).await.unwrap();
    client.write_all(edit.as_bytes()).await.unwrap();
    let waiting = "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database \
        WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()";
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut gate).await.unwrap() == 0 {
        perihelion::clock::sleep(Duration::from_millis(10)).await;
    }
    client.shutdown().await.unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    assert!(answer.is_empty(), "the server has given the request up");
    sqlx::raw_sql("SELECT pg_advisory_unlock(7)").execute(&mut gate).await.unwrap();
    served.until_got(&at(""), |shown| shown["status"] == "interrupted").await;
    let (_, state) = served.get(&at("/state")).await;
    assert_eq!((&state["next"], &state["values"]["plan"]), (&nodes, &json!(["mine"])));
    assert_eq!(served.model.requests().len(), asked, "no agent ran");
}

/// X5: clients find the branches of a message by its id.
async fn messages_on_two_branches_of_a_thread_have_separate_ids(served: Served) {
    let thread = served.thread().await;
    let at = |path: &str| format!("/threads/{thread}{path}");
    let ids = |values: &Value| {
        let messages = values["messages"].as_array().unwrap().iter();
        messages.map(|one| one["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (_, first) = served.post(&at("/runs/wait"), &saying("hello")).await;
    let (_, history) = served.get(&at("/history?limit=100")).await;
    let oldest = history.as_array().unwrap().last().unwrap();
    let mut known = ids(&first);
    assert_eq!(known.len(), 2);
    // The first question has a place before it too, at which clients ask it in another way.
    for place in ["checkpoint", "parent_checkpoint"] {
        let mut again = saying("hello");
        again["checkpoint_id"] = oldest[place]["checkpoint_id"].clone();
        assert!(again["checkpoint_id"].is_string(), "{oldest}");
        let (_, branch) = served.post(&at("/runs/wait"), &again).await;
        let branch = ids(&branch);
        assert_eq!(branch.len(), 2, "{branch:?}");
        assert!(branch.iter().all(|id| !known.contains(id)), "{known:?} {branch:?}");
        known.extend(branch);
    }
}

/// Reads events until the stream said so often that a run has ended or the state was edited; returns each one's name, data and id.
async fn until_done(answer: reqwest::Response, count: usize) -> Vec<(String, Value, String)> {
    let mut stream = answer.bytes_stream();
    let mut text = String::new();
    let mut events = Vec::new();
    let mut done = 0;
    while done < count {
        text.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
        while let Some((event, rest)) = text.split_once("\n\n") {
            let field = |name: &str| {
                let line = event.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap_or_default().trim().to_owned()
            };
            if event.contains("event:") {
                let data: Value = serde_json::from_str(&field("data:")).unwrap();
                let is_edit = field("event:") == "state_update";
                done += usize::from(data["status"] == "run_done" || is_edit);
                events.push((field("event:"), data, field("id:")));
            }
            text = rest.to_owned();
        }
    }
    events
}

/// S2.12, X5: as the reference server's was recorded.
async fn a_thread_s_stream_has_the_events_of_all_its_runs_once(served: Served) {
    let thread = served.thread().await;
    let place = format!("{}/threads/{thread}/stream", served.url);
    let open = |last: Option<&str>, mode: &str| {
        let asked = served.http.get(format!("{place}?stream_mode={mode}"));
        last.map_or(asked.try_clone().unwrap(), |last| asked.header("last-event-id", last)).send()
    };
    let wait = format!("/threads/{thread}/runs/wait");
    served.post(&wait, &saying("before")).await;
    let live = open(None, "run_modes").await.unwrap();
    assert_eq!(live.status(), 200);
    served.post(&wait, &saying("hello")).await;
    let heard = until_done(live, 1).await;
    let (name, begun, _) = &heard[0];
    assert_eq!((name.as_str(), &begun["attempt"]), ("metadata", &json!(1)));
    let (name, ended, _) = heard.last().unwrap();
    assert_eq!((name.as_str(), &ended["run_id"]), ("metadata", &begun["run_id"]));
    assert!(heard[1..heard.len() - 1].iter().all(|(name, _, _)| name == "values"), "{heard:?}");
    let answers = heard.iter().filter(|(_, data, _)| data["answer"].is_string()).count();
    assert!(answers > 0, "{heard:?}");

    let whole = until_done(open(Some("-1"), "run_modes").await.unwrap(), 2).await;
    assert_eq!(whole[whole.len() - heard.len()..], heard[..], "the same under the same ids");
    let mut again = Vec::new();
    for at in [0, whole.len() / 3, whole.len() - 2] {
        let rest = until_done(open(Some(&whole[at].2), "run_modes").await.unwrap(), {
            whole[at + 1..].iter().filter(|(_, data, _)| data["status"] == "run_done").count()
        });
        again.push(rest.await);
        assert_eq!(again.last().unwrap()[..], whole[at + 1..], "after {}", whole[at].2);
    }
    let lifecycle = until_done(open(Some("-1"), "lifecycle").await.unwrap(), 2).await;
    assert_eq!(lifecycle.len(), 4, "{lifecycle:?}");
    assert_eq!(open(None, "nonsense").await.unwrap().status(), 422);
    let both = open(Some("-1"), "lifecycle&stream_mode=run_modes").await.unwrap();
    assert_eq!(until_done(both, 2).await, whole, "a list as clients write it");
    let nobody = "0197a000-0000-7000-8000-000000000000";
    assert_eq!(served.get(&format!("/threads/{nobody}/stream")).await.0, 404);
}

/// X5: `state_update`, as the reference server was seen to tell of it.
async fn the_stream_of_a_thread_reports_edits_as_they_happen(served: Served) {
    let thread = served.thread().await;
    let at = |path: &str| format!("/threads/{thread}{path}");
    let open = |modes: &str| served.http.get(format!("{}{}?{modes}", served.url, at("/stream")));
    let edit = |plan: &str| json!({ "values": { "plan": [plan] }, "as_node": "qa" });
    served.post(&at("/runs/wait"), &saying("before")).await;
    served.post(&at("/state"), &edit("unheard")).await;

    let edits = open("stream_modes=state_update").send().await.unwrap();
    let both = open("stream_mode=run_modes&stream_mode=state_update").send().await.unwrap();
    let (_, made) = served.post(&at("/state"), &edit("one")).await;
    served.post(&at("/runs/wait"), &saying("hello")).await;
    served.post(&at("/state"), &edit("two")).await;

    let heard = until_done(edits, 2).await;
    assert_eq!(heard.len(), 2, "{heard:?}");
    let (name, reported, id) = &heard[0];
    assert_eq!((name.as_str(), id.as_str()), ("state_update", ""));
    assert_eq!(reported["thread_id"], thread);
    assert_eq!(reported["state"]["values"]["plan"], json!(["one"]));
    assert_eq!(reported["state"]["metadata"]["source"], "update");
    assert_eq!(reported["state"]["checkpoint"]["checkpoint_id"], made["checkpoint_id"]);
    assert_eq!(heard[1].1["state"]["values"]["plan"], json!(["two"]));

    let heard = until_done(both, 3).await;
    let edits = heard.iter().filter(|(name, _, _)| name == "state_update");
    let plans: Vec<&Value> = edits.map(|(_, data, _)| &data["state"]["values"]["plan"]).collect();
    assert_eq!(plans, [&json!(["one"]), &json!(["two"])]);
    assert!(heard.iter().any(|(_, data, _)| data["status"] == "run_done"), "{heard:?}");
}
