//! Documents that a docling-serve reads: its API `v1` over HTTP, as its server answers.

use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use serde_json::{Value, json};

use super::Home;
use super::external::{long_page, written};

/// What the server makes of a document: its task's states, one after the other, and its result.
struct Script {
    states: Vec<&'static str>,
    result: Box<dyn Fn(&str) -> Value + Send + Sync>,
}

/// A docling-serve that wants the key `k`.
struct Server {
    script: Script,
    asked: Mutex<Vec<Value>>,
    polls: Mutex<usize>,
}

impl Server {
    async fn start(script: Script) -> (String, Arc<Self>) {
        let server = Self { script, asked: Mutex::default(), polls: Mutex::default() };
        let server = Arc::new(server);
        let app = Router::new()
            .route("/v1/convert/source/async", post(convert))
            .route("/v1/status/poll/{task}", get(poll))
            .route("/v1/result/{task}", get(result))
            .with_state(Arc::clone(&server));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        (url, server)
    }

    fn task(state: &str) -> Value {
        json!({ "task_id": "t-1", "task_type": "convert", "task_status": state, "task_position": 1, "task_meta": null,
                "error_message": "the pipeline says no" })
    }
}

type Answer = Result<Json<Value>, (StatusCode, Json<Value>)>;

async fn convert(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Answer {
    if headers.get("x-api-key").is_none_or(|key| key != "k") {
        return Err((StatusCode::UNAUTHORIZED, Json(json!({ "detail": "Invalid API Key." }))));
    }
    let mut asked = server.asked.lock().unwrap();
    asked.push(body);
    // It is full at first.
    match asked.len() {
        1 => Err((StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "detail": "busy" })))),
        _ => Ok(Json(Server::task("pending"))),
    }
}

async fn poll(State(server): State<Arc<Server>>, Path(task): Path<String>) -> Json<Value> {
    assert_eq!(task, "t-1");
    let mut polls = server.polls.lock().unwrap();
    let states = &server.script.states;
    let state = states[(*polls).min(states.len() - 1)];
    *polls += 1;
    Json(Server::task(state))
}

async fn result(State(server): State<Arc<Server>>) -> Json<Value> {
    let asked = server.asked.lock().unwrap();
    let mark = asked.last().unwrap()["options"]["md_page_break_placeholder"].as_str().unwrap();
    Json((server.script.result)(mark))
}

fn home() -> Home {
    let home = Home::new(None);
    std::fs::write(home.path().join("scan.pdf"), written::pdf(&[""])).unwrap();
    home
}

async fn add(home: &Home, url: &str, more: &[(&str, &str)]) -> std::process::Output {
    let mut command = home.command(&["documents", "add", "scan.pdf", "--json"]);
    command.env("PERIHELION_DOCUMENTS_PARSER", url);
    command.env("PERIHELION_DOCUMENTS_PARSER_API_KEY", "k").envs(more.iter().copied());
    command.output().await.unwrap()
}

/// Items of a document in docling's own form, by their pages.
fn on_pages(pages: &[u32]) -> Value {
    let item = |page: &u32| json!({ "content_layer": "body", "prov": [{ "page_no": page, "charspan": [0, 1] }] });
    let mut texts: Vec<Value> = pages.iter().map(item).collect();
    // What stands at the top and the bottom of each page is no part of the text.
    texts.push(json!({ "content_layer": "furniture", "prov": [{ "page_no": 9 }] }));
    json!({ "schema_name": "DoclingDocument", "texts": texts, "tables": [], "pictures": [] })
}

fn success(markdown: String, places: &Value) -> Value {
    json!({ "document": { "filename": "scan.pdf", "md_content": markdown, "json_content": places },
            "status": "success", "errors": [], "processing_time": 1.0, "timings": {} })
}

/// S3.05: a scan is read by a docling-serve, and what is found is cited by the page that it stands on.
#[tokio::test(flavor = "multi_thread")]
async fn a_scan_is_read_by_a_docling_serve_with_its_pages() {
    let result = |mark: &str| {
        success(
            format!(
                "# Deed\n\n{}\n\n{mark}\n\n# Weir\n\nIt is at the xylophone works.",
                long_page()
            ),
            &on_pages(&[1, 1, 3]),
        )
    };
    let states = vec!["pending", "started", "success"];
    let (url, server) = Server::start(Script { states, result: Box::new(result) }).await;
    let home = home();
    let output = add(&home, &format!("{url}/"), &[]).await;
    assert!(output.status.success(), "{output:?}");
    let added: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(added["documents"][0]["format"], "pdf");
    let warning = added["documents"][0]["warnings"][0].as_str().unwrap();
    assert_eq!(warning, "read by another program: docling-serve");
    {
        let asked = server.asked.lock().unwrap();
        let source = &asked[1]["sources"][0];
        let sent =
            base64::prelude::BASE64_STANDARD.decode(source["base64_string"].as_str().unwrap());
        assert_eq!((&source["kind"], &source["filename"]), (&json!("file"), &json!("scan.pdf")));
        assert_eq!(sent.unwrap(), std::fs::read(home.path().join("scan.pdf")).unwrap());
    }
    let found = home.json(&["documents", "search", "xylophone", "--json"]).await;
    let hit = &found["hits"][0];
    assert_eq!(hit["page"], 3, "{hit}");
    assert!(!hit.to_string().contains("<!--"), "{hit}");
}

/// Pages whose numbers are not certain are not made up.
#[tokio::test(flavor = "multi_thread")]
async fn pages_that_do_not_agree_are_left_out() {
    let result =
        |mark: &str| success(format!("One.\n\n{mark}\n\nTwo, a xylophone."), &on_pages(&[1, 2, 3]));
    let (url, _) =
        Server::start(Script { states: vec!["success"], result: Box::new(result) }).await;
    let home = home();
    let output = add(&home, &url, &[]).await;
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("without pages"), "{output:?}");
    let found = home.json(&["documents", "search", "xylophone", "--json"]).await;
    assert_eq!(found["hits"][0]["page"], Value::Null, "{found}");
}

/// What is missing is named beside what is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_is_read_in_part_says_what_is_missing() {
    for (errors, expected) in [
        (
            json!([{ "error_message": "Page 2: stage ocr timed out" }]),
            "Page 2: stage ocr timed out",
        ),
        (json!([]), "pages that docling does not name"),
    ] {
        let result = move |mark: &str| {
            let places = on_pages(&[1, 3]);
            let mut result = success(format!("One.\n\n{mark}\n\nTwo, a xylophone."), &places);
            result["status"] = json!("partial_success");
            result["errors"] = errors.clone();
            result
        };
        let script = Script { states: vec!["partial_success"], result: Box::new(result) };
        let (url, _) = Server::start(script).await;
        let home = home();
        let output = add(&home, &url, &[]).await;
        assert!(output.status.success(), "{output:?}");
        let added: Value = serde_json::from_slice(&output.stdout).unwrap();
        let warnings = added["documents"][0]["warnings"].to_string();
        assert!(warnings.contains(expected), "{warnings}");
        let found = home.json(&["documents", "search", "xylophone", "--json"]).await;
        assert_eq!(found["hits"][0]["page"], 3, "{found}");
    }
}

/// What goes wrong is named, and nothing of the document is kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_docling_serve_refuses_is_named() {
    let failed = |_: &str| {
        json!({ "document": { "filename": "scan.pdf" }, "status": "failure", "processing_time": 0.1,
                "errors": [{ "component_type": "pipeline", "module_name": "m", "error_message": "no such model" }] })
    };
    let (url, _) =
        Server::start(Script { states: vec!["success"], result: Box::new(failed) }).await;
    let (ends, _) =
        Server::start(Script { states: vec!["started", "failure"], result: Box::new(failed) })
            .await;
    let (slow, _) =
        Server::start(Script { states: vec!["started"], result: Box::new(failed) }).await;
    let key = ("PERIHELION_DOCUMENTS_PARSER_API_KEY", "wrong-canary");
    let time = ("PERIHELION_DOCUMENTS_PARSER_TIMEOUT_SEC", "0.5");
    for (url, more, part) in [
        (url.as_str(), vec![], "without a text. no such model"),
        (ends.as_str(), vec![], "ended as failure. the pipeline says no"),
        (slow.as_str(), vec![time], "not done within 0.5 s"),
        (slow.as_str(), vec![key], "set its key in PERIHELION_DOCUMENTS_PARSER_API_KEY"),
        ("http://127.0.0.1:1", vec![], "refused"),
    ] {
        let home = home();
        let output = add(&home, url, &more).await;
        assert_eq!(output.status.code(), Some(1), "{part}");
        let printed = String::from_utf8_lossy(&output.stderr).to_lowercase();
        assert!(
            printed.contains(&part.to_lowercase()) && printed.contains("documents.parser"),
            "{printed}"
        );
        assert!(!printed.contains("canary"), "{printed}");
        assert_eq!(home.json(&["documents", "list", "--json"]).await, json!([]));
    }
}
