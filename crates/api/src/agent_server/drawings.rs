//! Graphs of assistants: their drawings, their schemas and their subgraphs.

use axum::Json;
use axum::extract::{Path, State};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::assistants::found;
use super::{AppState, Refusal, wire};
use crate::http::{Asked, JsonResult};
use perihelion_engine::graph::END;
use perihelion_runtime::Drawing;
use perihelion_service::kept::Assistant;

/// Describes the graph that a hosted assistant's configuration makes; `None` for another assistant.
async fn described(
    app: &AppState,
    assistant: &Assistant,
    mut order: Value,
) -> Result<Option<Value>, Refusal> {
    order["tenant"] = json!(app.service.tenant());
    order["config"] = assistant.config.clone();
    order["context"] = assistant.context.clone();
    Ok(app.service.runtime().graph_for(&assistant.graph).ask("describe", order).await?)
}

/// How much of a hosted graph is shown.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Depth {
    /// Levels of subgraphs that are drawn, or `true` for all.
    xray: Option<String>,
    /// Whether subgraphs of subgraphs are listed: `true`.
    recurse: Option<String>,
}

impl Depth {
    fn xray(&self) -> Value {
        let given = self.xray.as_deref().unwrap_or_default();
        serde_json::from_str(&given.to_lowercase()).unwrap_or_default()
    }
}

pub(super) async fn graph(
    app: State<AppState>,
    Path(id): Path<String>,
    Asked(depth): Asked<Depth>,
) -> JsonResult {
    let assistant = found(&app, &id).await?;
    if let Some(found) = described(&app, &assistant, json!({ "xray": depth.xray() })).await? {
        return Ok(Json(found["drawing"].clone()));
    }
    let service = &app.service;
    Ok(Json(drawn(&service.runtime().drawing(service.tenant(), &assistant.graph).await?)))
}

fn drawn(Drawing { entry, nodes, edges }: &Drawing) -> Value {
    const START: &str = "__start__";
    let node = |id| json!({ "id": id, "type": "runnable", "data": { "name": id } });
    let nodes = [START].into_iter().chain(nodes.iter().map(String::as_str)).map(node);
    let begin = entry.iter().map(|to| json!({ "source": START, "target": to }));
    let edges = edges.iter().map(|edge| {
        let mut shown = json!({ "source": edge.from, "target": edge.to });
        if edge.is_conditional {
            shown["conditional"] = json!(true);
        }
        shown
    });
    json!({
        "nodes": nodes.chain([json!({ "id": END })]).collect::<Vec<_>>(),
        "edges": begin.chain(edges).collect::<Vec<_>>(),
    })
}

pub(super) async fn schemas(app: State<AppState>, Path(id): Path<String>) -> JsonResult {
    let assistant = found(&app, &id).await?;
    let of_config = described(&app, &assistant, json!({})).await?;
    let graph = assistant.graph;
    if let Some(mut found) = of_config {
        found["graph_id"] = json!(graph);
        if let Some(fields) = found.as_object_mut() {
            fields.retain(|name, _| name == "graph_id" || name.ends_with("_schema"));
        }
        return Ok(Json(found));
    }
    Ok(Json(wire::schemas(&graph, app.service.runtime().graph_for(&graph).about())))
}

pub(super) async fn subgraphs(
    app: State<AppState>,
    Path(id): Path<String>,
    Asked(depth): Asked<Depth>,
) -> JsonResult {
    below(&app, &id, &depth, None).await
}

/// Lists the subgraphs of a hosted graph with their schemas; other graphs have none.
async fn below(app: &AppState, id: &str, depth: &Depth, namespace: Option<&str>) -> JsonResult {
    let assistant = found(app, id).await?;
    let recurse = depth.recurse.as_deref().is_some_and(|word| word.eq_ignore_ascii_case("true"));
    let order = json!({ "recurse": recurse, "namespace": namespace });
    let found = described(app, &assistant, order).await?;
    Ok(Json(found.map_or_else(|| json!({}), |mut found| found["subgraphs"].take())))
}

pub(super) async fn subgraphs_of(
    app: State<AppState>,
    Path((id, namespace)): Path<(String, String)>,
    Asked(depth): Asked<Depth>,
) -> JsonResult {
    below(&app, &id, &depth, Some(&namespace)).await
}
