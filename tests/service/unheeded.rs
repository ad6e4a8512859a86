//! What is refused changes nothing, and what cannot be done for a client is refused by its name.

use serde_json::{Value, json};
use uuid::Uuid;

use super::served::Served;
use super::{on_both, saying};

on_both!(
    a_refused_edit_leaves_the_thread_unchanged,
    a_refused_run_leaves_no_thread_behind,
    a_thread_whose_steps_are_refused_is_not_left_behind,
    fields_that_cannot_be_heeded_are_refused_by_name,
    more_than_a_statement_takes_is_refused,
);

/// X5
async fn a_refused_edit_leaves_the_thread_unchanged(served: Served) {
    let thread = served.thread().await;
    served.post(&format!("/threads/{thread}/runs/wait"), &saying("hello")).await;
    let state = format!("/threads/{thread}/state");
    let (_, history) = served.post(&format!("/threads/{thread}/history"), &json!({})).await;
    let oldest = history.as_array().unwrap().last().unwrap()["checkpoint_id"].clone();
    let (_, before) = served.get(&state).await;
    assert_ne!(oldest, before["checkpoint_id"]);
    for wrong in [
        json!({ "checkpoint_id": oldest, "as_node": "nope", "values": {} }),
        json!({ "checkpoint_id": oldest, "as_node": "qa", "values": { "plan": 7 } }),
        json!({ "checkpoint": { "checkpoint_id": oldest }, "as_node": "nope", "values": null }),
    ] {
        let (code, reply) = served.post(&state, &wrong).await;
        assert_eq!(code, 422, "{wrong}: {reply}");
        assert_eq!(served.get(&state).await.1, before, "{wrong}");
    }
    // One that fits goes back, and takes the name of the node that had run there.
    for as_node in [json!("qa"), Value::Null] {
        let edit =
            json!({ "checkpoint_id": oldest, "as_node": as_node, "values": { "plan": ["x"] } });
        let (code, reply) = served.post(&state, &edit).await;
        assert_eq!(code, 200, "{reply}");
        let (_, after) = served.get(&state).await;
        assert_eq!(
            (&after["values"]["plan"], &after["values"]["answer"]),
            (&json!(["x"]), &Value::Null)
        );
    }
}

/// X5: a client that tries again would fill the list with them.
async fn a_refused_run_leaves_no_thread_behind(served: Served) {
    let question = Uuid::now_v7().simple().to_string();
    for wrong in [
        json!({ "command": { "resume": { question: "yes" } } }),
        json!({ "checkpoint_id": Uuid::now_v7(), "input": null }),
        json!({ "checkpoint_id": "nope", "input": {} }),
    ] {
        let mut body = saying("hello");
        body.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        for path in ["/runs", "/runs/wait", "/runs/stream"] {
            let (code, reply) = served.post(path, &body).await;
            assert!((400..500).contains(&code), "{path} {body}: {code} {reply}");
        }
    }
    assert_eq!(served.post("/threads/count", &json!({})).await.1, json!(0));
}

/// X5
async fn a_thread_whose_steps_are_refused_is_not_left_behind(served: Served) {
    let id = Uuid::now_v7();
    let step = |text: &str, node: &str| {
        let values = json!({ "messages": [{ "type": "human", "content": text }] });
        json!({ "updates": [{ "values": values, "command": null, "as_node": node }] })
    };
    let wrong =
        json!({ "thread_id": id, "supersteps": [step("a", "supervisor"), step("b", "nope")] });
    let (code, reply) = served.post("/threads", &wrong).await;
    assert_eq!(code, 422, "{reply}");
    assert_eq!(served.get(&format!("/threads/{id}")).await.0, 404);
    let fine = json!({ "thread_id": id, "supersteps": [step("a", "supervisor"), step("b", "qa")] });
    let (code, made) = served.post("/threads", &fine).await;
    assert_eq!(code, 200, "{made}");
    let reply = made["values"]["messages"].as_array().unwrap();
    let reply: Vec<&str> = reply.iter().map(|one| one["content"].as_str().unwrap()).collect();
    assert_eq!(reply, ["a", "b"]);
}

/// X5
async fn fields_that_cannot_be_heeded_are_refused_by_name(served: Served) {
    let thread = served.thread().await;
    let ttl = json!({ "ttl": { "ttl": 5, "strategy": "delete" } });
    let command =
        json!({ "updates": [{ "values": null, "command": { "goto": "qa" }, "as_node": "qa" }] });
    let extract = json!({ "extract": { "last": "values.messages[-1]" } });
    for (method, path, body, name) in [
        ("POST", "/threads/search", json!({ "values": { "answer": "x" } }), "values"),
        ("POST", "/threads/count", json!({ "values": { "answer": "x" } }), "values"),
        ("POST", "/threads/search", extract, "extract"),
        ("POST", "/threads", ttl.clone(), "ttl"),
        ("PATCH", &format!("/threads/{thread}"), ttl, "ttl"),
        ("POST", "/threads", json!({ "supersteps": [command] }), "supersteps"),
    ] {
        let (code, reply) = served.send(method.parse().unwrap(), path, &body).await;
        let why = reply["detail"].as_str().unwrap_or_default();
        assert!(code == 422 && why.starts_with(&format!("{name}: ")), "{path}: {code} {reply}");
    }
    let nothing = json!({ "values": {}, "extract": null });
    assert_eq!(served.post("/threads/count", &nothing).await, (200, json!(1)));
}

/// X5: each id and each field is a value of a statement, of which databases take so many.
async fn more_than_a_statement_takes_is_refused(served: Served) {
    let ids = |count: usize| vec![Uuid::nil(); count];
    let fields: serde_json::Map<String, Value> =
        (0..30_000).map(|number| (format!("f{number}"), json!("x"))).collect();
    for (path, body) in [
        ("/threads/search", json!({ "ids": ids(40_000) })),
        ("/threads/search", json!({ "ids": ids(1_001) })),
        ("/threads/count", json!({ "ids": ids(1_001) })),
        ("/threads/search", json!({ "metadata": fields })),
        ("/runs/cancel", json!({ "run_ids": ids(1_001) })),
        ("/threads/prune", json!({ "thread_ids": ids(1_001) })),
    ] {
        let (code, reply) = served.post(path, &body).await;
        assert_eq!(code, 422, "{path}: {reply}");
    }
    let found = served.post("/threads/search", &json!({ "ids": ids(1_000) })).await;
    assert_eq!(found, (200, json!([])));
}
