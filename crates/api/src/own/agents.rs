//! The agents there are now, and what is wrong with servers that give none.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Value, json};

use crate::http::{JsonResult, Refusal};
use perihelion_runtime::{AgentInfo, Phase, ServerState};
use perihelion_service::Service;

fn shown(agent: &AgentInfo, states: &[ServerState]) -> Value {
    let server = &agent.server;
    let state = states.iter().find(|state| state.server == server.name);
    let tools = server.tools.iter().map(|tool| {
        json!({
            "name": tool.name, "description": tool.description, "input_schema": tool.input_schema,
            "needs_approval": tool.needs_approval, "read_only": tool.read_only,
        })
    });
    json!({
        "name": agent.name,
        "server": server.name,
        "kind": agent.kind,
        "status": state.map_or(Phase::New, |state| state.phase).as_str(),
        "problem": state.and_then(|state| state.problem.as_deref()),
        "description": server.description,
        "open_world": server.open_world,
        "tools": tools.collect::<Vec<_>>(),
    })
}

pub(super) async fn list(State(service): State<Service>) -> Json<Value> {
    let there = service.runtime().agents();
    let states = there.states();
    let agents: Vec<Value> = there.list().iter().map(|agent| shown(agent, &states)).collect();
    let problems: Vec<Value> = there
        .problems()
        .iter()
        .map(|one| json!({ "server": one.server, "problem": one.problem }))
        .collect();
    Json(json!({ "agents": agents, "problems": problems }))
}

pub(super) async fn get(State(service): State<Service>, Path(name): Path<String>) -> JsonResult {
    let agents = service.runtime().agents();
    agents
        .find(&name)
        .map(|agent| Json(shown(&agent, &agents.states())))
        .ok_or_else(|| Refusal::missing(format!("unknown agent: {name}")))
}
