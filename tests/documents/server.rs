//! `perihelion mcp documents` over standard streams.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};

use super::endpoint::{Endpoint, willing};
use super::{Home, LEASE, characters};

type Client = RunningService<RoleClient, ()>;

pub(super) async fn start(home: &Home, arguments: &[&str]) -> Client {
    let arguments: Vec<&str> =
        ["mcp", "documents"].into_iter().chain(arguments.iter().copied()).collect();
    ().serve(TokioChildProcess::new(home.command(&arguments)).unwrap()).await.unwrap()
}

async fn call(client: &Client, tool: &str, arguments: Value) -> CallToolResult {
    let arguments = arguments.as_object().unwrap().clone();
    client
        .call_tool(CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments))
        .await
        .unwrap()
}

/// Calls a tool that must succeed and returns its data, checked against the schema it promises.
pub(super) async fn data(client: &Client, tool: &str, arguments: Value) -> Value {
    let result = call(client, tool, arguments).await;
    assert_ne!(result.is_error, Some(true), "{result:?}");
    let data = result.structured_content.unwrap();
    let tools = client.list_all_tools().await.unwrap();
    let tool = tools.iter().find(|known| known.name == tool).unwrap();
    let schema = Value::Object(tool.output_schema.as_deref().unwrap().clone());
    assert!(jsonschema::is_valid(&schema, &data), "{data} is not: {schema}");
    data
}

/// S3.05, S3.06: added by path and by text, found with a quote that is the text, read, deleted.
#[tokio::test(flavor = "multi_thread")]
async fn documents_are_added_found_read_and_deleted_over_mcp() {
    let home = Home::new(None);
    let client = start(&home, &["--root", "."]).await;
    let lease = data(&client, "add_document", json!({ "path": "lease.md" })).await;
    assert_eq!(lease["title"], "Lease");
    assert!(lease["not_described"].as_str().unwrap().contains("OPENAI_BASE_URL"));
    let text = "# Minutes\n\nThe budget of 300 crowns was approved.\n";
    let minutes =
        data(&client, "add_document", json!({ "text": text, "title": "Minutes of May" })).await;
    assert_eq!(minutes["title"], "Minutes of May");
    let again = data(&client, "add_document", json!({ "path": "lease.md" })).await;
    assert_eq!(again["unchanged"], true);

    let listed = data(&client, "list_documents", json!({})).await;
    assert_eq!(listed["documents"].as_array().unwrap().len(), 2);

    let found = data(
        &client,
        "search_documents",
        json!({ "query": "notice period to end the lease", "limit": 3 }),
    )
    .await;
    let hit = &found["hits"][0];
    assert_eq!(hit["document"], lease["document"]);
    assert_eq!(hit["section"], "Lease › Termination");
    let whole = data(&client, "read_document", json!({ "document": lease["document"] })).await;
    assert_eq!(whole["text"], LEASE);
    assert_eq!(characters(LEASE, &hit["start"], &hit["end"]), hit["quote"]);
    let asked = json!({ "query": "notice period", "parents": true });
    let passages = data(&client, "search_documents", asked).await;
    let best = &passages["hits"][0];
    let parent = characters(LEASE, &best["parent"]["start"], &best["parent"]["end"]);
    assert!(parent.contains(best["quote"].as_str().unwrap()) && parent.len() > 40, "{parent}");
    let part = json!({ "document": lease["document"], "start": hit["start"], "end": hit["end"] });
    assert_eq!(data(&client, "read_document", part).await["text"], hit["quote"]);

    let text: String =
        (0..70).map(|n| format!("# Part {n}\n\n{}\n\n", "A tariff. ".repeat(60))).collect();
    data(&client, "add_document", json!({ "text": text, "title": "Tariffs" })).await;
    let many = data(&client, "search_documents", json!({ "query": "tariff", "limit": 65 })).await;
    assert_eq!(
        (many["hits"].as_array().unwrap().len(), &many["by_words_only"]),
        (65, &Value::Null)
    );

    let only = json!({ "query": "crowns", "filters": { "documents": [minutes["document"]] } });
    let found = data(&client, "search_documents", only).await;
    assert!(
        found["hits"].as_array().unwrap().iter().all(|hit| hit["document"] == minutes["document"])
    );

    let narrowed = async |filters: Value| {
        let asked = json!({ "query": "lease notice crowns", "filters": filters });
        let found = data(&client, "search_documents", asked).await;
        found["hits"].as_array().unwrap().len()
    };
    assert_eq!(narrowed(json!({ "section": "termination" })).await, 1);
    assert_eq!(narrowed(json!({ "format": "pdf" })).await, 0);
    assert_eq!(narrowed(json!({ "person": "archer" })).await, 0);
    assert_eq!(narrowed(json!({ "until": "2020-01-01T00:00:00Z" })).await, 0);
    assert!(narrowed(json!({ "since": "2020-01-01T00:00:00Z" })).await > 1);

    data(&client, "delete_document", json!({ "document": lease["document"] })).await;
    let found = data(&client, "search_documents", json!({ "query": "lease" })).await;
    assert!(
        found["hits"].as_array().unwrap().iter().all(|hit| hit["document"] != lease["document"])
    );
    client.cancel().await.unwrap();
}

/// S3.05: a server that is killed while it adds continues at the same call, and nothing that was answered is asked again.
#[tokio::test(flavor = "multi_thread")]
async fn adding_continues_after_the_server_was_killed_and_the_document_is_described() {
    let victim = Arc::new(AtomicU32::new(0));
    let armed = Arc::clone(&victim);
    let on_embeddings = move |number: usize| {
        let pid = armed.swap(0, Ordering::SeqCst);
        if number == 1 && pid != 0 {
            kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).unwrap();
        } else {
            armed.store(pid, Ordering::SeqCst);
        }
        true
    };
    let endpoint = Endpoint::start(Arc::new(on_embeddings), Arc::new(willing)).await;
    let home = Home::new(Some(endpoint.url.clone()));
    let part = |n: usize| format!("## Part {n}\n\nOf thing {n}. {}\n\n", "And more. ".repeat(90));
    let text: String = (0..8).map(part).collect();
    let arguments = json!({ "text": text, "title": "Long" });
    let serve = async || {
        let mut command = home.command(&["mcp", "documents"]);
        command.env("PERIHELION_EMBEDDINGS_BATCH", "3");
        let process = TokioChildProcess::new(command).unwrap();
        let pid = process.id().unwrap();
        (().serve(process).await.unwrap(), pid)
    };
    let (client, pid) = serve().await;
    victim.store(pid, Ordering::SeqCst);
    let asked = CallToolRequestParams::new("add_document");
    let asked = asked.with_arguments(arguments.as_object().unwrap().clone());
    assert!(client.call_tool(asked).await.is_err(), "it was killed");

    let (client, _) = serve().await;
    let added = data(&client, "add_document", arguments).await;
    assert_eq!((&added["not_described"], &added["unchanged"]), (&Value::Null, &json!(false)));
    assert_eq!(added["summary"], "It says something.");
    let asked = std::mem::take(&mut *endpoint.asked.lock().unwrap());
    assert_eq!(asked.chats.len(), 1);
    let sent: Vec<&String> = asked.embeddings.iter().flatten().collect();
    let distinct: BTreeSet<&String> = sent.iter().copied().collect();
    assert_eq!(sent.len() - distinct.len(), 3, "the request that it died of was sent again");
    let titles = async || {
        let threads = home.json(&["threads", "list", "--json"]).await.to_string();
        threads.matches("document text:Long.md").count()
    };
    assert_eq!(titles().await, 1);
    data(&client, "delete_document", json!({ "document": added["document"] })).await;
    assert_eq!(titles().await, 0);
    client.cancel().await.unwrap();
}

/// What cannot be added is refused by name, and nothing outside of the served directory is read.
#[tokio::test(flavor = "multi_thread")]
async fn files_that_give_no_text_and_files_elsewhere_are_refused() {
    let home = Home::new(None);
    std::fs::write(home.path().join("broken.pdf"), b"%PDF-1.7\nrubbish").unwrap();
    std::fs::write(home.path().join("empty.txt"), b"").unwrap();
    let client = start(&home, &["--root", "."]).await;
    for (path, words) in [
        ("broken.pdf", "damaged"),
        ("empty.txt", "empty"),
        ("/etc/hostname", "cannot read"),
        ("../x.md", "cannot read"),
        ("no.md", "cannot read"),
    ] {
        let result = call(&client, "add_document", json!({ "path": path })).await;
        assert_eq!(result.is_error, Some(true), "{path}");
        let text = result.content[0].as_text().unwrap().text.clone();
        assert!(text.contains(words), "{path}: {text}");
    }
    let result = call(&client, "add_document", json!({})).await;
    assert_eq!(result.is_error, Some(true));
    let result = call(&client, "read_document", json!({ "document": "nowhere" })).await;
    assert_eq!(result.is_error, Some(true));
    client.cancel().await.unwrap();
}

/// Who only searches needs no key of the threads; who adds is told which one is missing.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_the_thread_keys_searches_but_adds_no_document() {
    let home = Home::new(None);
    let serve = async |keys: Option<&str>| {
        let mut command = home.command(&["mcp", "documents"]);
        if let Some(keys) = keys {
            command.env("PERIHELION_ENCRYPTION_KEYS", keys);
        }
        ().serve(TokioChildProcess::new(command).unwrap()).await.unwrap()
    };
    let client = serve(None).await;
    data(&client, "add_document", json!({ "path": "lease.md" })).await;
    client.cancel().await.unwrap();
    let client = serve(Some("k1=env:NOT_SET")).await;
    let found = data(&client, "search_documents", json!({ "query": "rent" })).await;
    assert!(!found["hits"].as_array().unwrap().is_empty());
    let refused = call(&client, "add_document", json!({ "path": "garden.md" })).await;
    assert_eq!(refused.is_error, Some(true));
    let text = refused.content[0].as_text().unwrap().text.clone();
    assert!(text.contains("NOT_SET"), "{text}");
    client.cancel().await.unwrap();
}

/// A collection and an owner of a server's own see nothing of others.
#[tokio::test(flavor = "multi_thread")]
async fn owners_are_apart_and_a_reading_server_offers_no_writing() {
    let home = Home::new(None);
    let ann = start(&home, &["--owner", "ann"]).await;
    let path = home.path().join("lease.md").display().to_string();
    data(&ann, "add_document", json!({ "path": path })).await;
    let ben = start(&home, &["--owner", "ben", "--read-only"]).await;
    let found = data(&ben, "search_documents", json!({ "query": "rent" })).await;
    assert!(found["hits"].as_array().unwrap().is_empty());
    let tools = ben.list_all_tools().await.unwrap();
    assert!(tools.iter().all(|tool| tool.name != "add_document" && tool.name != "delete_document"));
    ann.cancel().await.unwrap();
    ben.cancel().await.unwrap();
}
