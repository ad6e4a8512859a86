//! The models there are: each graph that has messages, the star first, and each team.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Value, json};

use super::refusal::Refusal;
use crate::http::JsonResult;
use crate::team;
use perihelion_service::Service;
use perihelion_star::{GRAPH, TEAM_PREFIX};

/// The creation time of graphs for clients.
const BEGINNING: i64 = 1_767_225_600;

fn shown(name: &str, created: i64) -> Value {
    json!({ "id": name, "object": "model", "created": created, "owned_by": "perihelion" })
}

async fn all(service: &Service) -> Result<Vec<Value>, Refusal> {
    let teams = team::all(service).await?;
    let teams =
        teams.iter().map(|kept| shown(&kept.team.agent_name(), kept.created_at.timestamp()));
    let graphs = service.runtime().graphs().map(|graph| graph.about());
    let graphs = graphs.filter(|about| about.messages.is_some());
    Ok(graphs.map(|about| shown(&about.name, BEGINNING)).chain(teams).collect())
}

pub(super) async fn list(service: State<Service>) -> JsonResult<Refusal> {
    Ok(Json(json!({ "object": "list", "data": all(&service).await? })))
}

pub(super) async fn get(service: State<Service>, Path(model): Path<String>) -> JsonResult<Refusal> {
    let all = all(&service).await?;
    let found = all.iter().find(|one| one["id"] == model.as_str()).cloned();
    found.map(Json).ok_or_else(|| missing(&model, &all))
}

/// Finds the target of a model name: a team, a program's own graph, or the star, which leaves a team's thread with the
/// team.
pub(super) async fn team(service: &Service, model: &str) -> Result<Option<String>, Refusal> {
    if model == GRAPH {
        return Ok(None);
    }
    let all = all(service).await?;
    let is_named = model.starts_with(TEAM_PREFIX) || service.runtime().own_graph(model).is_some();
    let is_team = is_named && all.iter().any(|one| one["id"] == model);
    is_team.then(|| Some(model.to_owned())).ok_or_else(|| missing(model, &all))
}

fn missing(model: &str, all: &[Value]) -> Refusal {
    let there: Vec<&str> = all.iter().filter_map(|one| one["id"].as_str()).collect();
    let there = there.join(", ");
    let why = format!("The model `{model}` does not exist. Available models: {there}.");
    Refusal::missing(why).about("model", "model_not_found")
}
