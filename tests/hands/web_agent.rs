//! The web agent in the whole star: a search provider and a site on this machine, which the operator allows.

#[path = "../../crates/parse/tests/support/pdf.rs"]
mod written;

use axum::extract::State;
use axum::response::Html;
use axum::routing::get;
use axum::{Json, Router};
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule};
use serde_json::{Value, json};

use crate::agents::{Star, script};
use crate::client;

async fn found(State(address): State<String>) -> Json<Value> {
    let hit = |title: &str, path: &str| json!({ "title": title, "url": format!("http://{address}/{path}"), "content": title });
    Json(
        json!({ "results": [hit("Tides", "tides"), hit("The moon", "moon"), hit("Gone", "gone")] }),
    )
}

fn page(title: &str, text: &str) -> Html<String> {
    let filler = "The harbour has a wall of granite and a light at its end. ".repeat(12);
    Html(format!(
        "<html><head><title>{title}</title></head><body><article><h1>{title}</h1><p>{text}</p><p>{filler}</p></article></body></html>"
    ))
}

/// Starts a site whose search knows its own pages, one of which is gone, and returns its address.
async fn site() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let router = Router::new()
        .route("/search", get(found))
        .route("/tides", get(async || page("Tides", "High tide comes twice in a lunar day.")))
        .route("/moon", get(async || page("The moon", "The moon pulls the tide.")))
        .with_state(address.clone());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

/// S3.07: pages are found, read together and cited by address and quote; a page that is gone costs nothing else.
#[tokio::test]
async fn pages_are_read_and_cited_by_address_and_quote() {
    let address = site().await;
    let script = script("mcp_agent_surf")
        .rule(Rule::new(Reply::json(json!({ "ranking": [1, 2] }))).role(Role::Reranker))
        .rule(Rule::new(Reply::text("High tide comes twice [1], they say [9].")).stage("answer"));
    let table = format!(
        "args = [\"mcp\", \"web\", \"--search-url\", \"http://{address}\", \"--allow-host\", \"{address}\", \"--pause-ms\", \"0\"]"
    );
    let star = Star::open("surf", &table, script).await;
    let report = star.run(&["run", "When does high tide come?", "--thread", "t", "--json"]).await;
    let result = &report["results"][0];
    assert_eq!(result["status"], "success", "{report:#}");
    assert_eq!(result["output"], "High tide comes twice [1], they say.");
    let source = &result["sources"][0];
    assert!(source["reference"].as_str().unwrap().contains(&address), "{source:#}");
    assert!(source["quote"].as_str().unwrap().contains("twice in a lunar day"), "{source:#}");
    let answered = star.stage("answer");
    assert!(answered[0].contains("The moon pulls the tide"), "both pages were read");
    let replayed = star.perihelion(&["replay", "t"]).await;
    assert!(replayed.status.success(), "{replayed:?}");
}

/// S3.07: what the search shows of pages is cited where no call is left to read them.
#[tokio::test]
async fn without_a_call_left_the_results_of_the_search_are_cited() {
    let address = site().await;
    let script = script("mcp_agent_surf")
        .rule(Rule::new(Reply::json(json!({ "ranking": [1, 2] }))).role(Role::Reranker))
        .rule(Rule::new(Reply::text("There are tides [1].")).stage("answer"));
    let table = format!(
        "args = [\"mcp\", \"web\", \"--search-url\", \"http://{address}\", \"--allow-host\", \"{address}\", \"--pause-ms\", \"0\"]"
    );
    let star = Star::open("surf", &table, script).await;
    star.limit_tool_calls(1);
    let report = star.run(&["run", "When does high tide come?", "--json"]).await;
    let result = &report["results"][0];
    assert_eq!(result["output"], "There are tides [1].", "{report:#}");
    assert_eq!(result["sources"][0]["quote"], "Tides", "{report:#}");
}

/// S3.07: a PDF is read by the documents' parser; one that is damaged says so.
#[tokio::test]
async fn a_pdf_of_the_web_is_read_as_text() {
    let content = "BT /F 12 Tf 72 700 Td (Neap tides are the weakest tides.) Tj ET";
    let file = written::pdf(&[content]);
    let kind = [("content-type", "application/pdf")];
    let broken = get(async move || (kind, "%PDF-1.7 rubbish"));
    let router =
        Router::new().route("/tides.pdf", get(async move || (kind, file))).route("/broken", broken);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let arguments = ["web", "--allow-host", &address, "--pause-ms", "0"];
    let client = client::start(&arguments, &[]).await;
    let url = |path: &str| json!({ "url": format!("http://{address}/{path}") });
    let page = client.data("fetch", url("tides.pdf")).await;
    assert!(page["text"].as_str().unwrap().contains("Neap tides are the weakest"), "{page:#}");
    let message = client.failure("fetch", url("broken")).await;
    assert!(message.contains("cannot read the document"), "{message}");
    client.stop().await;
}

/// S3.07: an address that the question or a page names is read unasked; one that the model made up waits for a person, who sees why.
#[tokio::test]
async fn an_address_from_no_known_source_waits_for_a_person() {
    let address = site().await;
    let fetch =
        |path: &str| Reply::call("fetch", json!({ "url": format!("http://{address}/{path}") }));
    let script = script("mcp_agent_surf")
        .rule(Rule::new(fetch("tides")).agent("mcp_agent_surf").after_tool_results(0))
        .rule(Rule::new(fetch("moon?key=secret")).agent("mcp_agent_surf").after_tool_results(1))
        .rule(Rule::new(Reply::text("Twice a day.")).agent("mcp_agent_surf"));
    let table = format!(
        "args = [\"mcp\", \"web\", \"--allow-host\", \"{address}\", \"--pause-ms\", \"0\"]\nagent = \"tools\"\n\
         [mcp_servers.surf.tools.fetch]\neffect = \"read_only\""
    );
    let star = Star::open("surf", &table, script).await;
    let question = format!("What does http://{address}/tides say of high tide?");
    let report = star.run(&["run", &question, "--thread", "t", "--json"]).await;
    let asked = &report["interrupts"][0]["payload"];
    assert_eq!(
        asked["arguments"]["url"],
        format!("http://{address}/moon?key=secret"),
        "{report:#}"
    );
    let reason = asked["reasons"][0].as_str().unwrap();
    assert!(reason.contains("no question, result or page contains it"), "{reason}");
    let report = star.run(&["resume", "t", "--deny", "--json"]).await;
    assert_eq!(report["results"][0]["output"], "Twice a day.", "{report:#}");
}

/// S3.07: the pages of a task wait for a person together, and none is read before the last decision.
#[tokio::test]
async fn pages_that_need_an_approval_are_asked_about_together() {
    let address = site().await;
    let script = script("mcp_agent_surf")
        .rule(Rule::new(Reply::json(json!({ "ranking": [1, 2] }))).role(Role::Reranker))
        .rule(Rule::new(Reply::text("High tide comes twice [1].")).stage("answer"));
    let table = format!(
        "args = [\"mcp\", \"web\", \"--allow-host\", \"{address}\", \"--pause-ms\", \"0\"]\n\
         [mcp_servers.surf.tools.fetch]\napproval_mode = \"prompt\""
    );
    let star = Star::open("surf", &table, script).await;
    let question = format!("What do http://{address}/tides and http://{address}/moon say?");
    let report = star.run(&["run", &question, "--thread", "t", "--json"]).await;
    let open = report["interrupts"].as_array().unwrap();
    let ids: Vec<&str> = open.iter().map(|one| one["id"].as_str().unwrap()).collect();
    let [first, second] = ids.as_slice() else { panic!("{report:#}") };
    let resume =
        async |id: &str| star.run(&["resume", "t", "--interrupt", id, "--approve", "--json"]).await;
    let report = resume(first).await;
    assert_eq!(report["interrupts"][0]["id"], *second, "{report:#}");
    let report = resume(second).await;
    assert_eq!(report["results"][0]["output"], "High tide comes twice [1].", "{report:#}");
    assert_eq!(report["results"][0]["tools"].as_array().unwrap().len(), 2, "{report:#}");
}
