//! What the reference server was seen to answer where clients edit messages, follow runs and copy threads.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uuid::Uuid;

use super::protocol::{frames, is_lifecycle};
use super::served::Served;
use super::streams::events;
use super::{on_both, saying};

on_both!(
    messages_are_merged_by_their_ids_wherever_clients_write_them,
    states_name_the_run_that_made_them_and_copies_keep_their_checkpoints,
    an_edit_is_refused_while_a_run_is_open,
    an_assistant_is_deleted_with_its_threads,
    items_are_found_by_comparisons,
    of_two_answers_to_one_question_one_is_taken,
);

/// Returns type, id and content of the messages of a state.
fn shown_messages(values: &Value) -> Vec<(String, String, String)> {
    let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    let messages = values["messages"].as_array().unwrap().iter();
    messages.map(|one| (text(one, "type"), text(one, "id"), text(one, "content"))).collect()
}

fn message(kind: &str, id: &str, content: &str) -> (String, String, String) {
    (kind.to_owned(), id.to_owned(), content.to_owned())
}

async fn edited(served: &Served, thread: &str, messages: Value) -> Vec<(String, String, String)> {
    let state = format!("/threads/{thread}/state");
    let edit = json!({ "values": { "messages": messages }, "as_node": "qa" });
    let (code, reply) = served.post(&state, &edit).await;
    assert_eq!(code, 200, "{reply}");
    shown_messages(&served.get(&state).await.1["values"])
}

/// X5
async fn messages_are_merged_by_their_ids_wherever_clients_write_them(served: Served) {
    let step = |kind: &str, id: &str, content: &str| {
        let values = json!({ "messages": [{ "type": kind, "id": id, "content": content }] });
        json!({ "updates": [{ "values": values, "as_node": "qa" }] })
    };
    let body = json!({ "supersteps": [step("human", "a", "one"), step("ai", "b", "two"), step("human", "a", "1")] });
    let (code, made) = served.post("/threads", &body).await;
    assert_eq!(code, 200, "{made}");
    assert_eq!(
        shown_messages(&made["values"]),
        [message("human", "a", "1"), message("ai", "b", "two")]
    );
    let thread = made["thread_id"].as_str().unwrap();
    let list = json!([{ "role": "assistant", "id": "b", "content": "2" }, { "type": "system", "id": "s", "content": "Be brief." }]);
    let all = edited(&served, thread, list).await;
    let system = message("system", "s", "Be brief.");
    assert_eq!(all, [message("human", "a", "1"), message("ai", "b", "2"), system.clone()]);
    let all = edited(&served, thread, json!({ "type": "remove", "id": "a", "content": "" })).await;
    assert_eq!(all, [message("ai", "b", "2"), system]);
    let state = format!("/threads/{thread}/state");
    let unknown =
        json!({ "values": { "messages": [{ "type": "remove", "id": "nope" }] }, "as_node": "qa" });
    let (code, reply) = served.post(&state, &unknown).await;
    assert!(code == 400 && reply["detail"].as_str().unwrap().contains("'nope'"), "{reply}");
    let all = json!({ "type": "remove", "id": "__remove_all__", "content": "" });
    let left =
        edited(&served, thread, json!([all, { "type": "human", "id": "c", "content": "3" }])).await;
    assert_eq!(left, [message("human", "c", "3")]);

    // By a run: the input replaces what it knows, in the form of the JavaScript client, too.
    let serialised = json!({
        "lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "HumanMessage"],
        "kwargs": { "content": "hello", "id": "c" },
    });
    let removed = json!({ "type": "ai", "id": "d", "content": "aside" });
    let input = json!({ "assistant_id": "swarm", "input": { "messages": [removed, serialised] } });
    let (_, values) = served.post(&format!("/threads/{thread}/runs/wait"), &input).await;
    let all = shown_messages(&values);
    assert_eq!(all[..2], [message("human", "c", "hello"), message("ai", "d", "aside")]);
    assert_eq!((all.len(), all[2].2.as_str()), (3, "Hello from the star."));
    let both = json!([{ "type": "human", "id": "c", "content": "hello there" }, { "type": "human", "id": "e", "content": "and?" }]);
    let input = json!({ "assistant_id": "swarm", "input": { "messages": both } });
    let (_, values) = served.post(&format!("/threads/{thread}/runs/wait"), &input).await;
    let all = shown_messages(&values);
    assert_eq!(all[0], message("human", "c", "hello there"));
    assert_eq!((all.len(), &all[3]), (5, &message("human", "e", "and?")));
    let update = json!({ "messages": [{ "type": "remove", "id": "d", "content": "" }] });
    let command = json!({ "assistant_id": "swarm", "command": { "update": update, "goto": "qa" } });
    let (_, values) = served.post(&format!("/threads/{thread}/runs/wait"), &command).await;
    assert!(shown_messages(&values).iter().all(|(_, id, _)| id != "d"), "{values}");
}

/// X5: through any API, and with the question's ID in capital letters.
async fn of_two_answers_to_one_question_one_is_taken(served: Served) {
    let thread = served.thread().await;
    let runs = format!("/threads/{thread}/runs");
    served.post(&format!("{runs}/wait"), &saying("approve this")).await;
    let (_, state) = served.get(&format!("/threads/{thread}/state")).await;
    let id = state["interrupts"][0]["id"].as_str().unwrap().to_uppercase();
    let approve = format!("/v1/approvals/{id}/approve");
    let resume = json!({ id: { "decision": "approve" } });
    let answer = json!({ "assistant_id": "swarm", "command": { "resume": resume } });
    let empty = json!({});
    let all = tokio::join!(
        served.post(&runs, &answer),
        served.post(&approve, &empty),
        served.post(&runs, &answer)
    );
    let codes = [all.0.0, all.1.0, all.2.0];
    let taken = codes.iter().filter(|code| **code == 200).count();
    assert!(taken == 1 && codes.iter().all(|code| [200, 409, 422].contains(code)), "{all:?}");
    let (_, listed) = served.get(&runs).await;
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
}

/// X5
async fn states_name_the_run_that_made_them_and_copies_keep_their_checkpoints(served: Served) {
    let thread = served.thread().await;
    let mut runs = Vec::new();
    for _ in 0..2 {
        let body = saying("hello");
        let stream = events(&served, &format!("/threads/{thread}/runs/stream"), &body).await;
        runs.push(stream[0].data["run_id"].clone());
    }
    let edit = json!({ "values": { "plan": ["x"] }, "as_node": "qa" });
    served.post(&format!("/threads/{thread}/state"), &edit).await;
    let history = |thread: String| {
        let served = &served;
        async move {
            let path = format!("/threads/{thread}/history");
            served.post(&path, &json!({ "limit": 100 })).await.1.as_array().unwrap().clone()
        }
    };
    let states = history(thread.clone()).await;
    assert_eq!(states[0]["metadata"].get("run_id"), None, "{}", states[0]["metadata"]);
    let of = |run: &Value| states.iter().filter(|one| one["metadata"]["run_id"] == *run).count();
    assert!(of(&runs[0]) > 1 && of(&runs[0]) + of(&runs[1]) + 1 == states.len(), "{runs:?}");
    let (_, state) = served.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(state, states[0]);

    let (_, copy) = served.post(&format!("/threads/{thread}/copy"), &json!({})).await;
    let copy = copy["thread_id"].as_str().unwrap().to_owned();
    let copied = history(copy.clone()).await;
    let named = |states: &[Value]| -> Vec<(Value, Value)> {
        let name = |one: &Value| (one["checkpoint_id"].clone(), one["metadata"]["run_id"].clone());
        states.iter().map(name).collect()
    };
    assert_eq!(named(&copied), named(&states));
    assert_eq!(copied[0]["checkpoint"]["thread_id"], copy.as_str());
    let (_, shown) = served.get(&format!("/threads/{copy}")).await;
    assert_eq!(shown["config"], json!({ "configurable": {} }));
    let oldest = states.last().unwrap()["checkpoint_id"].as_str().unwrap();
    assert_eq!(served.get(&format!("/threads/{copy}/state/{oldest}")).await.0, 200);
    served.post(&format!("/threads/{copy}/state"), &edit).await;
    served.post(&format!("/threads/{thread}/state"), &edit).await;
    assert_ne!(history(copy).await[0]["checkpoint_id"], history(thread).await[0]["checkpoint_id"]);
}

/// X5
async fn an_edit_is_refused_while_a_run_is_open(served: Served) {
    let thread = served.thread().await;
    let before = served.model.requests().len();
    let (_, run) = served.post(&format!("/threads/{thread}/runs"), &saying("hang")).await;
    served.model.wait_for_requests(before + 1).await;
    let state = format!("/threads/{thread}/state");
    let (code, reply) = served.post(&state, &json!({ "values": { "plan": [] } })).await;
    let run = run["run_id"].as_str().unwrap();
    assert_eq!(code, 409, "{reply}");
    assert_eq!(reply["detail"], format!("Thread {thread} has in-flight runs: {run}"));
    served.post(&format!("/threads/{thread}/runs/{run}/cancel?wait=1"), &json!({})).await;
    assert_eq!(served.post(&state, &json!({ "values": { "plan": [] } })).await.0, 200);
}

/// X5
async fn an_assistant_is_deleted_with_its_threads(served: Served) {
    let mut threads = BTreeMap::new();
    for (name, code) in [("kept", 200), ("deleted", 404)] {
        let (_, made) =
            served.post("/assistants", &json!({ "graph_id": "swarm", "name": name })).await;
        let id = made["assistant_id"].as_str().unwrap().to_owned();
        let thread = served.thread().await;
        let mut body = saying("hello");
        body["assistant_id"] = json!(id);
        served.post(&format!("/threads/{thread}/runs/wait"), &body).await;
        threads.insert(thread, code);
        let query = if code == 404 { "?delete_threads=true" } else { "" };
        let path = format!("/assistants/{id}{query}");
        let (deleted, _) = served.send(reqwest::Method::DELETE, &path, &json!({})).await;
        assert_eq!(deleted, 204);
    }
    for (thread, code) in threads {
        assert_eq!(served.get(&format!("/threads/{thread}")).await.0, code);
    }
}

/// X5
async fn items_are_found_by_comparisons(served: Served) {
    for number in 0..4 {
        let value = json!({ "n": number, "s": if number % 2 == 0 { "y" } else { "x" } });
        let put = json!({ "namespace": ["t"], "key": number.to_string(), "value": value });
        served.send(reqwest::Method::PUT, "/store/items", &put).await;
    }
    for (filter, keys) in [
        (json!({ "n": { "$gt": 1 } }), vec!["2", "3"]),
        (json!({ "n": { "$gte": 1, "$lt": 3 }, "s": "x" }), vec!["1"]),
        (json!({ "n": { "$lte": 0 } }), vec!["0"]),
        (json!({ "s": { "$ne": "x" } }), vec!["0", "2"]),
        (json!({ "n": { "$eq": 2 } }), vec!["2"]),
    ] {
        let search = json!({ "namespace_prefix": ["t"], "filter": filter });
        let (_, found) = served.post("/store/items/search", &search).await;
        let mut found: Vec<&str> = found["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["key"].as_str().unwrap())
            .collect();
        found.sort_unstable();
        assert_eq!(found, keys, "{filter}");
    }
}

/// X5
#[tokio::test]
async fn the_stream_modes_send_the_same_events_as_the_reference() {
    let served = Served::sqlite().await;
    let thread = served.thread().await;
    let mut body = saying("approve this");
    body["input"]["messages"][0]["id"] = json!("m-1");
    body["stream_mode"] = json!(["values", "events", "messages", "messages-tuple"]);
    let stream = events(&served, &format!("/threads/{thread}/runs/stream"), &body).await;
    let first = stream.iter().find(|event| event.name == "values").unwrap();
    assert_eq!(shown_messages(&first.data), [message("human", "m-1", "approve this")]);

    let of_graph: Vec<&Value> = stream
        .iter()
        .filter(|event| event.name == "events" && event.data["parent_ids"] == json!([]))
        .map(|event| &event.data)
        .collect();
    let kinds: Vec<&str> = of_graph.iter().map(|one| one["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["on_chain_start", "on_chain_end"]);
    assert_eq!(of_graph[0]["data"]["input"], body["input"]);
    assert_eq!(stream[1].data, *of_graph[0], "the first after the metadata");
    assert!(of_graph[1]["data"]["output"]["messages"].is_array());
    let streams = stream.iter().any(|event| event.data["event"] == "on_chain_stream");
    assert!(streams, "{stream:#?}");

    // The question of the agent is answered; then its report and the answer are messages.
    let resume = json!({ "decisions": [{ "type": "approve" }] });
    let body = json!({
        "assistant_id": "swarm", "command": { "resume": resume },
        "stream_mode": ["values", "messages", "messages-tuple"],
    });
    let stream = events(&served, &format!("/threads/{thread}/runs/stream"), &body).await;
    let last = stream.iter().rev().find(|event| event.name == "values").unwrap();
    for (kind, id, content) in
        shown_messages(&last.data).into_iter().filter(|(kind, ..)| kind == "ai")
    {
        let described = stream
            .iter()
            .filter(|event| event.name == "messages/metadata" && event.data.get(&id).is_some());
        assert_eq!(described.count(), 1, "{kind} {id}");
        let pieces =
            stream.iter().filter(|event| event.name == "messages" && event.data[0]["id"] == id);
        let whole: String =
            pieces.map(|event| event.data[0]["content"].as_str().unwrap()).collect();
        assert_eq!(whole, content, "{id}");
    }
}

/// X5
#[tokio::test]
async fn a_limit_of_steps_is_named_as_the_reference_names_it() {
    let served = Served::sqlite().await;
    let thread = served.thread().await;
    let mut body = saying("hello");
    body["config"] = json!({ "recursion_limit": 1 });
    let (_, reply) = served.post(&format!("/threads/{thread}/runs/wait"), &body).await;
    assert_eq!(reply["__error__"]["error"], "GraphRecursionError", "{reply}");
    let why = reply["__error__"]["message"].as_str().unwrap();
    assert!(why.starts_with("Recursion limit of 1 reached"), "{why}");
    let (_, shown) = served.get(&format!("/threads/{thread}")).await;
    assert_eq!(shown["error"], reply["__error__"]);
}

/// X5
#[tokio::test]
async fn the_channel_of_tools_reports_calls() {
    let served = Served::sqlite().await;
    let thread = Uuid::now_v7();
    let place = format!("/threads/{thread}/commands");
    let input = json!({ "messages": [{ "role": "human", "content": "approve this" }] });
    let start = json!({ "id": 1, "method": "run.start", "params": { "assistant_id": "swarm", "input": input } });
    served.post(&place, &start).await;
    let wanted = json!({ "channels": ["tools", "input", "lifecycle"] });
    let asked = frames(&served, thread, &wanted, |frame| is_lifecycle(frame, "interrupted")).await;
    let asked = asked.iter().find(|frame| frame["method"] == "input.requested").unwrap();
    let answer = json!({
        "interrupt_id": asked["params"]["data"]["interrupt_id"], "response": { "decisions": [{ "type": "approve" }] },
    });
    let respond = json!({ "id": 2, "method": "input.respond", "params": answer });
    served.post(&place, &respond).await;
    let whole = frames(&served, thread, &wanted, |frame| is_lifecycle(frame, "completed")).await;
    let of_tools = whole.iter().filter(|frame| frame["method"] == "tools");
    let calls: Vec<&Value> = of_tools.map(|frame| &frame["params"]["data"]).collect();
    assert_eq!(calls.len(), 2, "{calls:#?}");
    assert_eq!(calls[0]["event"], "tool-started");
    assert_eq!(calls[0]["tool_name"], "notes.append_note");
    assert_eq!(calls[0]["input"], json!({ "text": "remember" }));
    assert_eq!(calls[1]["event"], "tool-finished");
    assert_eq!(calls[1]["tool_call_id"], calls[0]["tool_call_id"]);
}

/// X5
#[tokio::test]
async fn answers_to_questions_that_are_not_open_and_impossible_dates_are_refused() {
    let served = Served::sqlite().await;
    for text in ["clarify this", "approve this"] {
        let thread = served.thread().await;
        let runs = format!("/threads/{thread}/runs/wait");
        served.post(&runs, &saying(text)).await;
        let own = Uuid::now_v7();
        for id in [own.to_string(), own.simple().to_string(), "deadbeef".into(), "t1".into()] {
            let resume = json!({ (id): "1945" });
            let body = json!({ "assistant_id": "swarm", "command": { "resume": resume } });
            let (code, reply) = served.post(&runs, &body).await;
            assert_eq!(code, 422, "{text}: {reply}");
            let (_, state) = served.get(&format!("/threads/{thread}/state")).await;
            assert_eq!(state["interrupts"].as_array().unwrap().len(), 1, "{text}");
        }
    }
    for (schedule, end) in [
        ("0 0 30 2 *", Value::Null),
        ("0 0 31 4,6 *", Value::Null),
        ("0 0 * * *", json!("2020-01-01T00:00:00Z")),
        ("0 0 * * *", json!("2020-01-01T00:00:00")),
    ] {
        let never = json!({ "assistant_id": "swarm", "input": { "question": "hello" }, "schedule": schedule, "end_time": end });
        let (code, reply) = served.post("/runs/crons", &never).await;
        assert!(
            code == 400 && reply["detail"].as_str().unwrap().contains("no date matches"),
            "{reply}"
        );
    }
}
