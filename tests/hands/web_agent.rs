//! The web agent in the whole star: a search provider and a site on this machine, which the operator allows.

use axum::extract::State;
use axum::response::Html;
use axum::routing::get;
use axum::{Json, Router};
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule};
use serde_json::{Value, json};

use crate::agents::{Star, script};

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
