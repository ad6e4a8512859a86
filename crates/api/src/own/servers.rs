//! Agents and MCP servers with their status, calls of their tools, changes of a server since it was pinned, and their
//! approval.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use perihelion_people::{AuditEntry, Scope};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::http::{Body, JsonResult, Refusal};
use perihelion_engine::clock;
use perihelion_mcp::{CallContext, Reply, ToolOutcome};
use perihelion_runtime::{AgentInfo, Phase, Review, ServerState, review};
use perihelion_service::Service;

fn shown_agent(agent: &AgentInfo, states: &[ServerState]) -> Value {
    let server = &agent.server;
    let state = states.iter().find(|state| state.server == server.name);
    let tools = server.tools.iter().map(|tool| {
        json!({
            "name": tool.name, "title": tool.title, "description": tool.description, "input_schema": tool.input_schema,
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

pub(super) async fn agents(service: State<Service>) -> Json<Value> {
    let there = service.runtime().agents();
    let states = there.states();
    let agents: Vec<Value> = there.list().iter().map(|agent| shown_agent(agent, &states)).collect();
    let problems: Vec<Value> = there
        .problems()
        .iter()
        .map(|one| json!({ "server": one.server, "problem": one.problem }))
        .collect();
    Json(json!({ "agents": agents, "problems": problems }))
}

pub(super) async fn agent(service: State<Service>, Path(name): Path<String>) -> JsonResult {
    let agents = service.runtime().agents();
    agents
        .find(&name)
        .map(|agent| Json(shown_agent(&agent, &agents.states())))
        .ok_or_else(|| Refusal::missing(format!("unknown agent: {name}")))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ToCall {
    arguments: Map<String, Value>,
}

/// Calls a tool once, outside any thread. The caller is the person who approves it, unless it only reads.
pub(super) async fn call(
    service: State<Service>,
    Path((name, tool)): Path<(String, String)>,
    Body(ToCall { arguments }): Body<ToCall>,
) -> JsonResult {
    let agents = service.runtime().agents();
    let found = agents.find(&name);
    let server = found.as_ref().map(|agent| &agent.server);
    let definition = server.and_then(|server| server.tools.iter().find(|one| one.name == tool));
    let (Some(server), Some(definition)) = (server, definition) else {
        return Err(Refusal::missing(format!(
            "no agent {name} has a tool {tool}; GET /v1/agents lists agents and tools"
        )));
    };
    let policy = definition.call_policy();
    let is_free = policy.read_only && !policy.needs_approval;
    service.permit(if is_free { Scope::Run } else { Scope::Approve })?;
    definition.input_schema.check(&tool, &arguments).map_err(Refusal::invalid)?;
    note(&service, "tool.called", format!("{}.{tool}", server.name), json!({})).await?;
    let context = CallContext {
        idempotency_key: Uuid::now_v7().to_string(),
        tenant: service.tenant().to_owned(),
        under: Some(if is_free { policy } else { policy.allowed() }),
        ..CallContext::default()
    };
    let began = clock::now();
    let outcome = match agents.call(&server.name, &tool, arguments, context).await {
        Ok(Reply::Done(outcome)) => outcome,
        Ok(Reply::Asked { .. } | Reply::Task { .. }) => ToolOutcome::failed(
            "the tool asks a question or continues in the background; call it in a thread",
        ),
        Err(error) => ToolOutcome::failed(error.for_models()),
    };
    let ToolOutcome { text, structured, is_error, .. } = outcome;
    Ok(Json(json!({
        "result": structured.unwrap_or(Value::String(text)), "is_error": is_error,
        "ms": (clock::now() - began).num_milliseconds(),
    })))
}

pub(super) async fn list(service: State<Service>) -> Json<Value> {
    Json(json!({ "servers": service.runtime().agents().states() }))
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Compares a server with its pin, for managers of the service itself, because all tenants share its servers.
async fn looked(service: &Service, server: &str) -> Result<Review, Refusal> {
    service.permit(Scope::Manage)?;
    if service.tenant() != &*service.runtime().runner().tenant {
        let why = "pinning servers requires the scope manage in the service's own tenant";
        return Err(Refusal(StatusCode::FORBIDDEN, why.to_owned()));
    }
    Ok(review(service.runtime().settings(), &environment, server).await?)
}

/// Starts the server and returns its definitions with its pin.
pub(super) async fn changes(service: State<Service>, Path(name): Path<String>) -> JsonResult {
    let found = looked(&service, &name).await?;
    Ok(Json(json!({
        "server": found.server, "changes": found.headings, "text": found.text,
        "nothing": found.nothing(),
    })))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Seen {
    /// The text of the changes that were read, as they were shown.
    text: String,
}

/// Pins a server as it was read; later changes are rejected, and must be read first.
pub(super) async fn approve(
    service: State<Service>,
    Path(name): Path<String>,
    Body(seen): Body<Seen>,
) -> JsonResult {
    let found = looked(&service, &name).await?;
    if let Some(nothing) = found.nothing() {
        return Err(Refusal(StatusCode::CONFLICT, format!("nothing to approve: {nothing}")));
    }
    if found.text != seen.text {
        let why =
            "the server has changed since you read it: read its changes again, then approve them";
        return Err(Refusal(StatusCode::CONFLICT, format!("{why}: {name}")));
    }
    let changes = found.headings.clone();
    found.accept()?;
    note(&service, "server.approved", name.clone(), json!({ "changes": changes })).await?;
    Ok(Json(json!({ "server": name, "changes": changes, "accepted": true })))
}

async fn note(
    service: &Service,
    action: &str,
    subject: String,
    details: Value,
) -> Result<(), Refusal> {
    let entry = AuditEntry {
        id: Uuid::now_v7(),
        at: clock::now(),
        tenant: service.tenant().to_owned(),
        actor: service.who().user.clone(),
        action: action.to_owned(),
        subject,
        thread: None,
        details,
    };
    Ok(service.people().note(&entry).await?)
}
