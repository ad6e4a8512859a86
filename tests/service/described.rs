//! Answers are what `/openapi.json` says of them (X5).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::saying;
use super::served::Served;

/// Returns what a route's answer is held to.
fn validator(document: &Value, method: &str, path: &str) -> jsonschema::Validator {
    let answer = &document["paths"][path][method]["responses"]["200"]["content"];
    let mut schema = answer["application/json"]["schema"].clone();
    assert!(schema.is_object(), "{method} {path}");
    schema["components"] = document["components"].clone();
    jsonschema::validator_for(&schema).unwrap()
}

#[tokio::test]
async fn the_main_responses_match_their_descriptions_and_wrong_ones_do_not() {
    let served = Served::sqlite().await;
    let (_, document) = served.get("/openapi.json").await;
    let thread = served.thread().await;
    let at = |path: &str| format!("/threads/{thread}{path}");
    let (_, run) = served.post(&at("/runs"), &saying("approve this")).await;
    let id = run["run_id"].as_str().unwrap();
    served.get(&at(&format!("/runs/{id}/join"))).await;
    let cron = json!({ "schedule": "0 0 1 1 *", "assistant_id": "swarm", "input": { "question": "hello" } });
    let item = json!({ "namespace": ["a"], "key": "k", "value": {} });
    served.send(reqwest::Method::PUT, "/store/items", &item).await;
    let new = served.thread().await;
    for (method, path, asked, body) in [
        ("post", "/threads", "/threads".to_owned(), json!({})),
        ("get", "/threads/{thread}", at(""), json!(null)),
        ("post", "/threads/search", "/threads/search".into(), json!({})),
        ("post", "/threads/search", "/threads/search".into(), json!({ "select": ["status"] })),
        ("get", "/threads/{thread}/state", at("/state"), json!(null)),
        ("get", "/threads/{thread}/state", format!("/threads/{new}/state"), json!(null)),
        ("get", "/threads/{thread}/history", at("/history"), json!(null)),
        ("post", "/threads/{thread}/history", at("/history"), json!({ "select": ["next"] })),
        ("get", "/threads/{thread}/runs", at("/runs"), json!(null)),
        ("get", "/threads/{thread}/runs/{run}", at(&format!("/runs/{id}")), json!(null)),
        ("get", "/assistants/{id}", "/assistants/swarm".into(), json!(null)),
        ("post", "/assistants/search", "/assistants/search".into(), json!({})),
        ("post", "/runs/crons", "/runs/crons".into(), cron),
        ("post", "/runs/crons/search", "/runs/crons/search".into(), json!({})),
        ("get", "/store/items", "/store/items?namespace=a&key=k".into(), json!(null)),
        ("get", "/store/items", "/store/items?namespace=a&key=none".into(), json!(null)),
    ] {
        let schema = validator(&document, method, path);
        let (code, found) = match method {
            "get" => served.get(&asked).await,
            _ => served.post(&asked, &body).await,
        };
        assert_eq!(code, 200, "{asked}: {found}");
        let wrong: Vec<String> =
            schema.iter_errors(&found).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{method} {path}: {wrong:?} {found}");
        let other = if found.is_array() {
            json!([{ "status": 1, "next": 1, "name": 1, "enabled": 1, "run_id": 1 }])
        } else {
            json!({})
        };
        assert!(!schema.is_valid(&other), "{method} {path} takes {other}");
    }
    let refused = validator(
        &json!({ "components": document["components"], "paths": { "/": { "get": {
        "responses": { "200": document["paths"]["/threads/{thread}"]["get"]["responses"]["4XX"] } } } } }),
        "get",
        "/",
    );
    let (code, why) = served.get("/threads/0197a000-0000-7000-8000-000000000000").await;
    assert!(code == 404 && refused.is_valid(&why) && !refused.is_valid(&json!({})), "{why}");
    for path in ["/v1/approvals/history", "/v1/threads/{thread}/report"] {
        let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap();
        assert!(parameters.iter().any(|one| one["in"] == "query"), "{path}: {parameters:?}");
    }
}

#[tokio::test]
async fn a_stream_is_described_whether_its_reader_takes_text_or_events() {
    let served = Served::sqlite().await;
    let (_, document) = served.get("/openapi.json").await;
    for path in ["/runs/stream", "/v1/responses"] {
        let answer = &document["paths"][path]["post"]["responses"]["200"]["content"];
        let schema = &answer["text/event-stream"]["schema"];
        let schema = jsonschema::validator_for(schema).unwrap();
        let event = json!({ "event": "metadata", "data": "{}", "id": "0-1" });
        assert!(schema.is_valid(&event) && schema.is_valid(&json!("event: metadata")), "{path}");
    }
}

/// The page that lists the routes; `UPDATE_ROUTES_PAGE=1 cargo test --test service described` writes it.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/routes.md");

#[tokio::test]
async fn the_reference_lists_every_route() {
    let served = Served::sqlite().await;
    let (_, document) = served.get("/openapi.json").await;
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let (Some(group), Some(summary)) =
                (operation["tags"][0].as_str(), operation["summary"].as_str())
            else {
                continue;
            };
            let method = method.to_uppercase();
            let row = format!("| `{path}` | {method} | {summary} |");
            groups.entry(group.to_owned()).or_default().push(row);
        }
    }
    let mut page = String::from(
        "# HTTP routes\n\n\
         Every route of `perihelion serve`. `/openapi.json` of a running service also describes parameters, bodies and\n\
         responses. A test compares this page with it.\n",
    );
    for (group, mut rows) in groups {
        rows.sort();
        let rows = rows.join("\n");
        let _ =
            write!(page, "\n## {group}\n\n| Path | Method | Purpose |\n|---|---|---|\n{rows}\n");
    }
    if std::env::var_os("UPDATE_ROUTES_PAGE").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert_eq!(written, page, "UPDATE_ROUTES_PAGE=1 cargo test --test service described");
}
