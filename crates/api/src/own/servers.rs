//! MCP servers as they stand, what changed of them since they were pinned, and the approval of that.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use perihelion_people::{AuditEntry, Scope};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::{Body, JsonResult, Refusal};
use perihelion_engine::clock;
use perihelion_runtime::{Review, review};
use perihelion_service::Service;

pub(super) async fn list(State(service): State<Service>) -> Json<Value> {
    Json(json!({ "servers": service.runtime().agents().states() }))
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Looks at a server beside its pin, for those who manage the service itself: its servers are everybody's.
async fn looked(service: &Service, server: &str) -> Result<Review, Refusal> {
    service.permit(Scope::Manage)?;
    if service.tenant() != service.runtime().runner().tenant() {
        let why = "pinning servers requires the scope manage in the service's own tenant";
        return Err(Refusal(StatusCode::FORBIDDEN, why.to_owned()));
    }
    Ok(review(service.runtime().settings(), &environment, server).await?)
}

/// Starts the server and says what it is now beside its pin.
pub(super) async fn changes(
    State(service): State<Service>,
    Path(name): Path<String>,
) -> JsonResult {
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

/// Pins a server as it was read; what changed since then is refused, to be read first.
pub(super) async fn approve(
    State(service): State<Service>,
    Path(name): Path<String>,
    body: Body,
) -> JsonResult {
    let seen: Seen = body.read()?;
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
    let entry = AuditEntry {
        at: clock::now(),
        tenant: service.tenant().to_owned(),
        actor: service.who().user.clone(),
        action: "server.approved".to_owned(),
        subject: name.clone(),
        thread: None,
        details: json!({ "changes": changes }),
    };
    service.people().note(&entry).await?;
    Ok(Json(json!({ "server": name, "changes": changes, "accepted": true })))
}
