//! Answers have what those of the reference server have, field by field.

use serde_json::{Value, json};

use super::served::Served;
use super::streams::{Event, events};
use super::{on_both, saying};

on_both!(threads_and_runs_have_the_recorded_shapes, streams_have_the_recorded_shapes);

/// The shapes that were recorded, by name.
fn shapes() -> Value {
    serde_json::from_str(include_str!("shapes.json")).unwrap()
}

/// Checks that a value has all fields of a recorded shape, each of the recorded type.
pub fn assert_shape(name: &str, found: &Value) {
    let mut differs = Vec::new();
    compare(name, &shapes()[name], found, &mut differs);
    assert!(differs.is_empty(), "{}: {found}", differs.join("\n"));
}

/// Says where a value lacks fields of a recorded shape, or has them of another type; what was recorded as null is of any.
pub fn compare(place: &str, shape: &Value, found: &Value, differs: &mut Vec<String>) {
    match (shape, found) {
        (Value::Object(fields), Value::Object(there)) => {
            for (name, shape) in fields.iter().filter(|(name, _)| {
                !["user", "action", "question", "langgraph_py_version"].contains(&name.as_str())
            }) {
                match there.get(name) {
                    Some(found) => compare(&format!("{place}.{name}"), shape, found, differs),
                    None => differs.push(format!("{place} lacks {name}")),
                }
            }
        }
        (Value::Array(one), Value::Array(there)) => {
            if let (Some(shape), Some(found)) = (one.first(), there.first()) {
                compare(&format!("{place}[0]"), shape, found, differs);
            }
        }
        (Value::String(kind), found) => {
            let is = match found {
                Value::Null => "null",
                Value::String(_) => "string",
                Value::Number(_) => "number",
                Value::Bool(_) => "boolean",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            if is != kind && kind != "null" {
                differs.push(format!("{place} is not of type {kind}: {found}"));
            }
        }
        (shape, found) => differs.push(format!("{place} is not as recorded, {shape}: {found}")),
    }
}

/// X5
async fn threads_and_runs_have_the_recorded_shapes(served: Served) {
    assert_shape("ok", &served.get("/ok").await.1);
    assert_shape("info", &served.get("/info").await.1);
    let thread = served.thread().await;
    let at = |path: &str| format!("/threads/{thread}{path}");
    assert_shape("thread_new", &served.get(&at("")).await.1);
    assert_shape("state_empty", &served.get(&at("/state")).await.1);
    let (_, first) = served.post(&at("/runs/wait"), &saying("approve this")).await;
    assert_eq!(first["__interrupt__"].as_array().unwrap().len(), 1, "{first}");
    assert_shape("thread_interrupted", &served.get(&at("")).await.1);
    let (_, state) = served.get(&at("/state")).await;
    assert_shape("state_interrupted", &state);
    assert_eq!(state["tasks"][0]["interrupts"][0], state["interrupts"][0]);
    let resume = json!({ "assistant_id": "swarm", "input": {}, "command": { "resume": { "decisions": [{ "type": "approve" }] } } });
    let (_, done) = served.post(&at("/runs/wait"), &resume).await;
    assert_eq!(done["answer"], "Hello from the star.", "{done}");
    assert_shape("thread_done", &served.get(&at("")).await.1);
    let (_, history) = served.post(&at("/history"), &json!({ "limit": 3 })).await;
    assert_shape("history_item", &history[0]);
    let (_, runs) = served.get(&at("/runs")).await;
    assert_shape("run", &runs[0]);
    let (_, updated) =
        served.post(&at("/state"), &json!({ "values": { "plan": ["x"] }, "as_node": "qa" })).await;
    assert_shape("state_updated", &updated);
    let (_, assistants) = served.post("/assistants/search", &json!({ "limit": 10 })).await;
    assert_shape("assistant", &assistants[0]);
    assert_shape("graph", &served.get("/assistants/swarm/graph").await.1);
    assert_shape("schemas", &served.get("/assistants/swarm/schemas").await.1);
}

/// S3.08, X5
async fn streams_have_the_recorded_shapes(served: Served) {
    let thread = served.thread().await;
    let mut body = saying("approve this");
    body["stream_mode"] = json!([
        "values",
        "updates",
        "messages",
        "messages-tuple",
        "custom",
        "tasks",
        "checkpoints",
        "debug",
        "events",
    ]);
    let mut heard = events(&served, &format!("/threads/{thread}/runs/stream"), &body).await;
    assert_shape("sse_metadata", &heard[0].data);
    let asked = heard
        .iter()
        .find(|one| one.name == "updates" && !one.data["__interrupt__"].is_null())
        .unwrap();
    assert_shape("sse_interrupt", &asked.data);
    body["input"] = json!({});
    body["command"] = json!({ "resume": { "decisions": [{ "type": "approve" }] } });
    heard.extend(events(&served, &format!("/threads/{thread}/runs/stream"), &body).await);
    for (shape, name) in [
        ("sse_messages_tuple", "messages"),
        ("sse_messages_partial", "messages/partial"),
        ("sse_checkpoints", "checkpoints"),
        ("sse_event", "events"),
        ("sse_debug", "debug"),
    ] {
        let found =
            heard.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("no event: {name}"));
        assert_shape(shape, &found.data);
    }
    for one in heard.iter().filter(|one| one.name == "debug") {
        assert!(one.data["timestamp"].is_string(), "{}", one.data);
    }
    let task =
        heard.iter().find(|one| one.name == "tasks" && !one.data["triggers"].is_null()).unwrap();
    assert_shape("sse_task", &task.data);
    let result =
        heard.iter().find(|one| one.name == "tasks" && !one.data["result"].is_null()).unwrap();
    assert_shape("sse_task_result", &result.data);
    // An agent's report is no stream of a model, so it comes whole, as in the reference.
    let is_piece = |one: &&Event| one.name == "messages" && one.data[0]["type"] == "AIMessageChunk";
    let piece = heard.iter().find(is_piece).unwrap();
    assert_shape("chunk", &piece.data[0]);
    assert_shape("about", &piece.data[1]);
    let ids: Vec<&str> = heard.iter().map(|one| one.id.as_str()).collect();
    let unique: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "an id was used twice: {ids:?}");
}
