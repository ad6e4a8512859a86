//! The card that says what the agent can do and where.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use crate::api::agent_server::Refusal;
use crate::api::team;
use crate::runtime::KeptTeam;
use crate::service::Service;

pub(super) async fn get(State(service): State<Service>, headers: HeaderMap) -> Response {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let proto = headers.get("x-forwarded-proto").and_then(|proto| proto.to_str().ok());
    let base =
        format!("{}://{host}/a2a", proto.filter(|proto| *proto == "https").unwrap_or("http"));
    let teams = team::all(&service).await.unwrap_or_else(|Refusal(_, why)| {
        tracing::warn!(%why, "the card names no teams: they could not be read");
        Vec::new()
    });
    let card = card(&service, &teams, &base).to_string();
    let tag = format!("\"{}\"", &blake3::hash(card.as_bytes()).to_hex()[..16]);
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    let shown: Value = serde_json::from_str(&card).unwrap_or(Value::Null);
    ([(header::ETAG, tag), (header::CACHE_CONTROL, "public, max-age=60".to_owned())], Json(shown))
        .into_response()
}

fn card(service: &Service, teams: &[KeptTeam], base: &str) -> Value {
    let skills = service.runtime().agents().list().into_iter().map(|agent| {
        json!({
            "id": agent.name, "name": agent.server.name, "description": agent.server.description, "tags": ["mcp"],
        })
    });
    let whole = json!({
        "id": "swarm", "name": "swarm", "description": "Answers questions with a supervised team of agents", "tags": ["agents"],
    });
    let teams = teams.iter().map(|kept| {
        let design = &kept.team.design;
        json!({
            "id": kept.team.agent_name(), "name": design.name, "description": design.description, "tags": ["team"],
        })
    });
    let skills: Vec<Value> = [whole].into_iter().chain(teams).chain(skills).collect();
    json!({
        "name": "Perihelion",
        "description": "A supervised team of agents whose threads survive crashes and days of waiting.",
        "version": env!("CARGO_PKG_VERSION"),
        "supportedInterfaces": [
            { "url": base, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
            { "url": base, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0" },
        ],
        "capabilities": { "streaming": true, "pushNotifications": true, "extendedAgentCard": false },
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": skills,
    })
}
