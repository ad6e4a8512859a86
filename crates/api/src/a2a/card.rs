//! The agent cards: a public one, and one for authenticated callers.
//!
//! If authentication is required, the public card describes how, and contains no agents and teams.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::refusal::Refusal;
use crate::http::{JsonResult, Refusal as Plain};
use crate::team;
use perihelion_runtime::KeptTeam;
use perihelion_service::Service;
use perihelion_star::GRAPH;

pub(super) async fn public(service: State<Service>, headers: HeaderMap) -> Response {
    let card = if is_open(&service).await {
        whole(&service, &headers).await
    } else {
        closed(common(&headers, Vec::new()))
    };
    let tag = format!("\"{}\"", &blake3::hash(card.to_string().as_bytes()).to_hex()[..16]);
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    ([(header::ETAG, tag), (header::CACHE_CONTROL, "public, max-age=60".to_owned())], Json(card))
        .into_response()
}

/// Shows the card with everything that authenticated callers can use.
///
/// # Errors
/// [`Refusal::Unsupported`] without authentication, because then the public card is complete.
pub(super) async fn extended(service: State<Service>, headers: HeaderMap) -> JsonResult<Refusal> {
    if is_open(&service).await {
        return Err(Refusal::Unsupported("there is no extended agent card".into()));
    }
    Ok(Json(closed(whole(&service, &headers).await)))
}

/// Returns whether no authentication is required; required if that cannot be determined.
async fn is_open(service: &Service) -> bool {
    let is_protected = service.runtime().settings().serve.is_protected();
    !is_protected && service.people().is_anybody_known().await.is_ok_and(|is_known| !is_known)
}

/// Adds the means of authentication.
fn closed(mut card: Value) -> Value {
    card["capabilities"]["extendedAgentCard"] = json!(true);
    card["securitySchemes"] = json!({
        "key": { "apiKeySecurityScheme": { "location": "header", "name": "x-api-key" } },
        "bearer": { "httpAuthSecurityScheme": { "scheme": "Bearer" } },
    });
    let either = ["key", "bearer"].map(|scheme| json!({ "schemes": { (scheme): { "list": [] } } }));
    card["securityRequirements"] = json!(either);
    card
}

async fn whole(service: &Service, headers: &HeaderMap) -> Value {
    let teams = team::all(service).await.unwrap_or_else(|Plain(_, why)| {
        tracing::warn!(%why, "the agent card lists no teams, because they could not be read");
        Vec::new()
    });
    let agents = service.runtime().agents().list().into_iter().map(|agent| {
        let server = &agent.server;
        let usual = format!("Works with the tools of the MCP server {}", server.name);
        skill(&agent.name, &server.name, &server.description, &usual, "mcp")
    });
    let own = service.runtime().graphs().skip(1).map(|graph| graph.about());
    let own = own.filter(|about| about.messages.is_some()).map(|about| {
        let described = about.description.as_deref().unwrap_or_default();
        skill(&about.name, &about.name, described, "Works on messages", "graph")
    });
    common(headers, own.chain(teams.iter().map(of_team)).chain(agents).collect())
}

fn of_team(kept: &KeptTeam) -> Value {
    let design = &kept.team.design;
    let usual = format!("A team of {} agents", design.agents.len());
    skill(&kept.team.agent_name(), &design.name, &design.description, &usual, "team")
}

/// Makes a skill. Without its own description, it has the `usual` one.
fn skill(id: &str, name: &str, described: &str, usual: &str, tag: &str) -> Value {
    let says_something = described.chars().any(char::is_alphanumeric);
    let description = if says_something { described } else { usual };
    json!({ "id": id, "name": name, "description": description, "tags": [tag] })
}

/// Makes a card with the default skill, and further ones.
fn common(headers: &HeaderMap, others: Vec<Value>) -> Value {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let proto = headers.get("x-forwarded-proto").and_then(|proto| proto.to_str().ok());
    let base =
        format!("{}://{host}/a2a", proto.filter(|proto| *proto == "https").unwrap_or("http"));
    let about = "Answers questions with a supervised team of agents";
    let swarm = skill(GRAPH, GRAPH, about, about, "agents");
    let skills: Vec<Value> = [swarm].into_iter().chain(others).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_is_described_whatever_its_agent_says_of_itself() {
        for (described, shown) in [
            ("Reads invoices", "Reads invoices"),
            ("発票を読む", "発票を読む"),
            ("", "Works with tools"),
            (" \n\t", "Works with tools"),
            ("\u{200b}\u{feff}", "Works with tools"),
            ("…", "Works with tools"),
        ] {
            let skill = skill("mcp_agent_a", "a", described, "Works with tools", "mcp");
            assert_eq!(skill["description"], shown, "{described:?}");
        }
        let card = common(&HeaderMap::new(), Vec::new());
        let texts = [&card["description"], &card["skills"][0]["description"]];
        assert!(
            texts.iter().all(|text| text.as_str().is_some_and(|text| text.len() > 10)),
            "{card}"
        );
    }
}
