//! Recorded requests, with our graph in the place of the recorded ones.

use serde_json::{Map, Value, json};

/// Scenarios of a graph that works for long and says so; ours hangs, and tells its tasks.
pub const SLOW: [&str; 5] = [
    "20-background-join-cancel",
    "22-on-disconnect-cancel",
    "23-on-disconnect-continue",
    "39-midrun-reconnect-last-event-id",
    "53-agent-chat-ui-stop-slow",
];

/// Puts the events that our graph tells in the place of those that it does not.
pub fn modes(text: &str, is_slow: bool) -> String {
    if is_slow { text.replace("custom", "tasks") } else { text.to_owned() }
}

/// Names our graph, its nodes and what it is asked.
pub fn translate(body: &mut Value, open: &[String]) {
    let graph = body["assistant_id"].as_str().unwrap_or_default().to_owned();
    for value in body.as_object_mut().into_iter().flatten().map(|(_, value)| value) {
        match value {
            Value::Object(_) => translate(value, open),
            Value::Array(all) => {
                all.iter_mut().filter(|one| one.is_object()).for_each(|one| translate(one, open));
            }
            _ => {}
        }
    }
    if !graph.is_empty() && graph != "nope" {
        body["assistant_id"] = json!("swarm");
    }
    if body["graph_id"].is_string() {
        body["graph_id"] = json!("swarm");
    }
    if body["input"] == "given" {
        body["input"] = input(&graph);
    }
    for (name, ours) in [("update", json!({ "plan": ["x"] })), ("values", json!({ "plan": ["x"] }))]
    {
        if body[name] == "given" {
            body[name] = ours;
        }
    }
    for name in ["goto", "as_node"] {
        if body[name].is_string() {
            body[name] = json!("qa");
        }
    }
    for name in ["interrupt_before", "interrupt_after"] {
        if body[name].is_array() {
            body[name] = json!(["qa"]);
        }
    }
    if body["recursion_limit"].is_number() {
        body["recursion_limit"] = json!(1);
    }
    let decision = json!({ "decisions": [{ "type": "approve" }] });
    if body["resume"] == "given" {
        // Of several questions one is answered at a time.
        body["resume"] = match open {
            [first, _, ..] => json!({ first: decision }),
            _ => decision.clone(),
        };
    }
    if body["interrupt_id"].is_string() {
        body["interrupt_id"] = json!(open.first());
        body["response"] = decision;
    }
    // Indexing has made nulls of what was not there.
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
}

/// What our graph is asked so that it does what the recorded one did.
fn input(graph: &str) -> Value {
    let words = |text: &str| {
        Map::from_iter([("messages".to_owned(), json!([{ "role": "user", "content": text }]))])
    };
    Value::Object(match graph {
        "agent" | "hitl" => words("approve this"),
        "par" => words("twice"),
        "slow" => words("hang"),
        "boom" => {
            let mut input = words("approve this");
            input.insert("approvals".into(), json!("skip"));
            input
        }
        _ => words("hello"),
    })
}
