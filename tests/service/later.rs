//! Assistants, items and batches, as the reference server was recorded.

use futures::future::join_all;
use perihelion_database::{Database, query};
use reqwest::Method;
use serde_json::{Value, json};

use super::recorded::assert_shape;
use super::served::Served;
use super::{on_both, saying};

on_both!(
    an_assistant_has_versions_and_the_chosen_one_is_used,
    runs_use_the_context_and_limit_of_their_assistant,
    assistants_and_versions_are_sorted_paged_and_selected,
    items_are_stored_found_and_deleted_under_their_paths,
    namespaces_are_found_behind_thousands_of_others,
    threads_are_pruned_whole_or_down_to_their_newest_step,
    a_shortened_thread_lists_its_return_to_a_dropped_step,
    a_batch_begins_all_of_its_runs_or_fails_as_a_whole,
    requests_at_once_for_a_new_thread_find_the_same_one,
    a_run_that_a_thread_never_had_is_missing_and_no_fault_of_the_service,
);

/// X5
async fn an_assistant_has_versions_and_the_chosen_one_is_used(served: Served) {
    let body = json!({ "graph_id": "swarm", "name": "Clerk", "metadata": { "team": "blue" }, "config": { "recursion_limit": 9 } });
    let (code, made) = served.post("/assistants", &body).await;
    assert_eq!(code, 200, "{made}");
    let id = made["assistant_id"].as_str().unwrap();
    let place = format!("/assistants/{id}");
    let (_, second) = served.send(Method::PATCH, &place, &json!({ "name": "Chief" })).await;
    assert_eq!((&second["version"], &second["name"]), (&json!(2), &json!("Chief")));
    assert_eq!(second["config"], made["config"]);
    let (_, versions) = served.post(&format!("{place}/versions"), &json!({})).await;
    let numbers: Vec<&Value> =
        versions.as_array().unwrap().iter().map(|one| &one["version"]).collect();
    assert_eq!(numbers, [&json!(2), &json!(1)]);
    let (_, chosen) = served.post(&format!("{place}/latest"), &json!({ "version": 1 })).await;
    assert_eq!(chosen["name"], "Clerk");
    assert_eq!(served.post(&format!("{place}/latest"), &json!({ "version": 7 })).await.0, 404);
    for (filter, count) in [
        (json!({}), 2),
        (json!({ "metadata": { "team": "blue" } }), 1),
        (json!({ "name": "clerk" }), 1),
        (json!({ "graph_id": "other" }), 0),
    ] {
        assert_eq!(served.post("/assistants/count", &filter).await.1, json!(count), "{filter}");
    }
    for field in ["config", "context", "metadata"] {
        let (code, reply) = served.send(Method::PATCH, &place, &json!({ (field): "x" })).await;
        assert_eq!(code, 422, "{reply}");
        assert!(reply["detail"].as_str().unwrap().starts_with(field), "{reply}");
    }
    let again = json!({ "graph_id": "swarm", "assistant_id": id });
    assert_eq!(served.post("/assistants", &again).await.0, 409);
    let again = json!({ "graph_id": "swarm", "assistant_id": id, "if_exists": "do_nothing" });
    assert_eq!(served.post("/assistants", &again).await.1["assistant_id"], id);
    let thread = served.thread().await;
    let mut run = saying("hello");
    run["assistant_id"] = json!(id);
    let (_, left) = served.post(&format!("/threads/{thread}/runs/wait"), &run).await;
    assert_eq!(left["answer"], "Hello from the star.");
    assert_eq!(served.send(Method::DELETE, &place, &json!({})).await.0, 204);
    assert_eq!(served.get(&place).await.0, 404);
    let own = served.send(Method::DELETE, "/assistants/swarm", &json!({})).await;
    assert_eq!(own.0, 409, "{own:?}");
}

/// S2.12, X5
async fn runs_use_the_context_and_limit_of_their_assistant(served: Served) {
    let config = json!({ "configurable": { "region": "north-by-assistant", "tier": "below" }, "recursion_limit": 1 });
    let context = json!({ "tier": "gold-by-assistant" });
    let made = json!({ "graph_id": "swarm", "config": config, "context": context });
    let (_, made) = served.post("/assistants", &made).await;
    let mut body = saying("hello");
    body["assistant_id"] = made["assistant_id"].clone();
    let (code, bound) = served.post("/runs/wait", &body).await;
    assert_eq!(code, 200);
    assert!(bound["__error__"]["message"].is_string(), "one step is no answer: {bound}");
    body["config"] = json!({ "recursion_limit": 50, "configurable": { "floor": "third-by-run" } });
    body["context"] = json!({ "region": "south-by-run" });
    let before = served.model.requests().len();
    let (_, left) = served.post("/runs/wait", &body).await;
    assert_eq!(left["answer"], "Hello from the star.", "{left}");
    let heard: Vec<String> =
        served.model.requests()[before..].iter().map(|one| one.texts().join("\n")).collect();
    let heard = heard.join("\n");
    for word in ["gold-by-assistant", "third-by-run", "south-by-run"] {
        assert!(heard.contains(word), "{word}: {heard}");
    }
    assert!(!heard.contains("north-by-assistant"), "the run's own goes before: {heard}");
}

/// X5
async fn assistants_and_versions_are_sorted_paged_and_selected(served: Served) {
    let mut ids = Vec::new();
    for name in ["beta", "Alpha"] {
        let body = json!({ "graph_id": "swarm", "name": name, "metadata": { "team": "blue" } });
        ids.push(served.post("/assistants", &body).await.1["assistant_id"].clone());
    }
    let asked = json!({
        "metadata": { "team": "blue" }, "sort_by": "name", "sort_order": "asc", "select": ["name", "version"],
    });
    let (_, found) = served.post("/assistants/search", &asked).await;
    let wanted = json!([{ "name": "Alpha", "version": 1 }, { "name": "beta", "version": 1 }]);
    assert_eq!(found, wanted);
    let asked = json!({ "metadata": { "team": "blue" }, "sort_by": "created_at" });
    let (_, found) = served.post("/assistants/search", &asked).await;
    assert_eq!([&found[0]["name"], &found[1]["name"]], ["Alpha", "beta"]);
    assert_eq!(served.post("/assistants/search", &json!({ "sort_by": "colour" })).await.0, 422);
    let place = format!("/assistants/{}", ids[0].as_str().unwrap());
    for team in ["red", "green"] {
        served.send(Method::PATCH, &place, &json!({ "metadata": { "team": team } })).await;
    }
    for (asked, numbers) in [
        (json!({ "limit": 2 }), json!([3, 2])),
        (json!({ "limit": 2, "offset": 2 }), json!([1])),
        (json!({ "metadata": { "team": "red" } }), json!([2])),
    ] {
        let (_, found) = served.post(&format!("{place}/versions"), &asked).await;
        let found: Vec<&Value> =
            found.as_array().unwrap().iter().map(|one| &one["version"]).collect();
        assert_eq!(json!(found), numbers, "{asked}");
    }
}

/// X5
async fn threads_are_pruned_whole_or_down_to_their_newest_step(served: Served) {
    let short = served.thread().await;
    let gone = served.thread().await;
    for thread in [&short, &gone] {
        served.post(&format!("/threads/{thread}/runs/wait"), &saying("hello")).await;
    }
    let (_, before) = served.get(&format!("/threads/{short}/state")).await;
    let keep = json!({ "thread_ids": [short], "strategy": "keep_latest" });
    assert_eq!(served.post("/threads/prune", &keep).await, (200, json!({ "pruned_count": 1 })));
    let (_, after) = served.get(&format!("/threads/{short}/state")).await;
    assert_eq!(after["values"], before["values"]);
    let (_, history) = served.get(&format!("/threads/{short}/history?limit=100")).await;
    assert_eq!(history.as_array().unwrap().len(), 1, "{history}");
    let (_, left) =
        served.post(&format!("/threads/{short}/runs/wait"), &saying("hello again")).await;
    assert_eq!(left["messages"].as_array().unwrap().len(), 4, "{left}");
    let both = json!({ "thread_ids": [gone, uuid::Uuid::nil()] });
    assert_eq!(served.post("/threads/prune", &both).await, (200, json!({ "pruned_count": 1 })));
    assert_eq!(served.get(&format!("/threads/{gone}")).await.0, 404);
    let wrong = json!({ "thread_ids": [short], "strategy": "all" });
    assert_eq!(served.post("/threads/prune", &wrong).await.0, 422);
}

async fn a_shortened_thread_lists_its_return_to_a_dropped_step(served: Served) {
    let thread = served.thread().await;
    served.post(&format!("/threads/{thread}/runs/wait"), &saying("hello")).await;
    let newest = async || {
        let (code, steps) = served.get(&format!("/threads/{thread}/history?limit=100")).await;
        assert_eq!(code, 200, "{steps}");
        let shown = |step: &Value| (step["checkpoint_id"].clone(), step["values"].clone());
        steps.as_array().unwrap().iter().map(shown).collect::<Vec<_>>()
    };
    let steps = newest().await;
    let back = json!({ "values": null, "checkpoint_id": steps[steps.len() - 2].0 });
    assert_eq!(served.post(&format!("/threads/{thread}/state"), &back).await.0, 200);
    let before = newest().await;
    served.program(&["threads", "prune", "--keep-steps", "3", "--yes", &thread]).await;
    assert_eq!(newest().await, before[..3]);
}

/// X5
async fn items_are_stored_found_and_deleted_under_their_paths(served: Served) {
    for (path, key, value) in [
        (json!(["users", "u1"]), "tea", json!({ "kind": "green", "cups": 2 })),
        (json!(["users", "u2"]), "tea", json!({ "kind": "black" })),
        (json!(["teams"]), "blue", json!({ "size": 3 })),
    ] {
        let item = json!({ "namespace": path, "key": key, "value": value });
        assert_eq!(served.send(Method::PUT, "/store/items", &item).await.0, 204);
    }
    let (_, got) = served.get("/store/items?namespace=users.u1&key=tea").await;
    assert_eq!(got["value"]["cups"], 2);
    assert_eq!(served.get("/store/items?namespace=users.u9&key=tea").await.1, Value::Null);
    let search = async |body: Value| served.post("/store/items/search", &body).await.1;
    let found =
        search(json!({ "namespace_prefix": ["users"], "filter": { "kind": "black" } })).await;
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    assert_eq!(found["items"][0]["namespace"], json!(["users", "u2"]));
    let found = search(json!({ "namespace_prefix": [], "query": "GREEN" })).await;
    assert_eq!(found["items"][0]["key"], "tea");
    let (_, all) = served.post("/store/namespaces", &json!({})).await;
    assert_eq!(all["namespaces"], json!([["teams"], ["users", "u1"], ["users", "u2"]]));
    let (_, short) =
        served.post("/store/namespaces", &json!({ "prefix": ["users"], "max_depth": 1 })).await;
    assert_eq!(short["namespaces"], json!([["users"]]));
    let brief =
        json!({ "namespace": ["teams"], "key": "red", "value": { "size": 1 }, "ttl": 0.0001 });
    assert_eq!(served.send(Method::PUT, "/store/items", &brief).await.0, 204);
    let red = "/store/items?namespace=teams&key=red";
    served.until_got(red, |item| item.is_null()).await;
    let found = search(json!({ "namespace_prefix": ["teams"] })).await;
    assert_eq!(found["items"].as_array().unwrap().len(), 1, "{found}");
    let never = json!({ "namespace": ["teams"], "key": "red", "value": {}, "ttl": 0 });
    assert_eq!(served.send(Method::PUT, "/store/items", &never).await.0, 422);
    let dotted = json!({ "namespace": ["a.b"], "key": "k", "value": {} });
    assert_eq!(served.send(Method::PUT, "/store/items", &dotted).await.0, 422);
    let gone = json!({ "namespace": ["users", "u1"], "key": "tea" });
    assert_eq!(served.send(Method::DELETE, "/store/items", &gone).await.0, 204);
    assert_eq!(served.get("/store/items?namespace=users.u1&key=tea").await.1, Value::Null);
}

/// X5
async fn namespaces_are_found_behind_thousands_of_others(served: Served) {
    let zone = json!({ "namespace": ["zones", "eu"], "key": "k", "value": {} });
    assert_eq!(served.send(Method::PUT, "/store/items", &zone).await.0, 204);
    let database = Database::open(&served.database()).await.unwrap();
    let fill = query(
        "INSERT INTO service_item (tenant, namespace, key, value, created_at, updated_at) \
         WITH RECURSIVE n (i) AS (SELECT 10000 UNION ALL SELECT i + 1 FROM n WHERE i < 12099) \
         SELECT 'default', 'users' || $1 || i || $1, 'k', '{}', $2, $2 FROM n",
    );
    let fill = fill.bind("\u{1f}").bind(perihelion::clock::now());
    assert_eq!(database.of_all_tenants().execute(&fill).await.unwrap(), 2_100);
    database.close().await;
    let user = |number: u32| json!(["users", number.to_string()]);
    for (asked, expected) in [
        (json!({ "suffix": ["eu"] }), json!([["zones", "eu"]])),
        (json!({ "prefix": ["zones"] }), json!([["zones", "eu"]])),
        (json!({ "prefix": ["users", "*"], "max_depth": 1 }), json!([["users"]])),
        (json!({ "max_depth": 1 }), json!([["users"], ["zones"]])),
        (json!({ "offset": 2099, "limit": 2 }), json!([user(12_099), ["zones", "eu"]])),
        (
            json!({ "prefix": ["users"], "offset": 1, "limit": 2 }),
            json!([user(10_001), user(10_002)]),
        ),
        (json!({ "prefix": ["nobody"] }), json!([])),
    ] {
        let (_, found) = served.post("/store/namespaces", &asked).await;
        assert_eq!(found["namespaces"], expected, "{asked}");
    }
}

/// X5
async fn a_batch_begins_all_of_its_runs_or_fails_as_a_whole(served: Served) {
    let runs = json!([saying("hello"), saying("clarify this")]);
    let (code, begun) = served.post("/runs/batch", &runs).await;
    assert_eq!(code, 200, "{begun}");
    assert_shape("run", &begun[0]);
    let ids: Vec<&str> =
        begun.as_array().unwrap().iter().map(|run| run["thread_id"].as_str().unwrap()).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1]);
    let (_, before) = served.post("/threads/count", &json!({})).await;
    let half = json!([saying("hello"), { "assistant_id": "nobody", "input": { "question": "x" } }]);
    assert_eq!(served.post("/runs/batch", &half).await.0, 422);
    assert_eq!(served.post("/threads/count", &json!({})).await.1, before, "nothing was begun");
}

async fn a_run_that_a_thread_never_had_is_missing_and_no_fault_of_the_service(served: Served) {
    let thread = served.thread().await;
    served.post(&format!("/threads/{thread}/runs/wait"), &saying("hello")).await;
    for (which, code) in [("run=1", 200), ("run=0", 404), ("run=2", 404)] {
        let (answered, body) = served.get(&format!("/v1/threads/{thread}/replay?{which}")).await;
        assert_eq!(answered, code, "{which}: {body}");
        let diff = format!("/v1/threads/{thread}/diff?with={thread}&with_{which}");
        assert_eq!(served.get(&diff).await.0, code, "{which}");
    }
}

/// X5: as two tabs of a page send them, or one that asks twice.
async fn requests_at_once_for_a_new_thread_find_the_same_one(served: Served) {
    for round in 0..4 {
        let id = uuid::Uuid::now_v7();
        let mut named = saying("hello");
        named["if_not_exists"] = json!("create");
        let start = json!({ "id": 1, "method": "run.start", "params": saying("hello") });
        let message = json!({
            "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }],
            "contextId": format!("context {round}"),
        });
        let task = json!({ "message": message, "configuration": { "returnImmediately": true } });
        let (path, body) = match round {
            0 => ("/threads".to_owned(), json!({ "thread_id": id, "if_exists": "do_nothing" })),
            1 => (format!("/threads/{id}/runs"), named),
            2 => (format!("/threads/{id}/commands"), start),
            _ => ("/a2a/message:send".to_owned(), task),
        };
        let (_, before) = served.post("/threads/count", &json!({})).await;
        let all = join_all((0..16).map(|_| served.post(&path, &body))).await;
        for (code, reply) in all {
            let is_done = code == 200 && reply["type"] != "error";
            assert!(is_done, "{path}: {code} {reply}");
        }
        let (_, after) = served.post("/threads/count", &json!({})).await;
        assert_eq!(after.as_u64().unwrap(), before.as_u64().unwrap() + 1, "{path}");
    }
    let id = uuid::Uuid::now_v7();
    let new = json!({ "graph_id": "swarm", "assistant_id": id, "if_exists": "do_nothing" });
    for (code, reply) in join_all((0..16).map(|_| served.post("/assistants", &new))).await {
        assert_eq!((code, &reply["assistant_id"]), (200, &json!(id)), "{reply}");
    }
    let list = json!(["swarm", { "question": "hello" }]);
    let (code, reply) = served.post("/runs/wait", &list).await;
    assert_eq!(code, 422, "the fields of a run, without their names: {reply}");
}
