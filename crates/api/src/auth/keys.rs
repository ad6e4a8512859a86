//! The API keys of the one who asks; those who manage see and revoke all of their tenant.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use perihelion_people::{ApiKey, NewKey, Principal, ProvedBy, Scope};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::accounts;
use crate::http::{Body, JsonResult, Refusal};
use perihelion_service::Service;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    name: String,
    /// Those of the one who asks by default, without `manage`, `act_as` and `operate`.
    #[schemars(with = "Option<Vec<String>>")]
    scopes: Option<Vec<Scope>>,
    expires_at: Option<DateTime<Utc>>,
}

/// Lists the keys that the one who asks may see to.
async fn own(service: &Service) -> Result<Vec<ApiKey>, Refusal> {
    let mut keys = accounts(service).keys().await?;
    let who = service.who();
    if !who.may(Scope::Manage) {
        keys.retain(|key| match who.person() {
            Some(person) => key.user.as_deref() == Some(person),
            None => key.made_by.is_some() && key.made_by == own_key(who),
        });
    }
    Ok(keys)
}

/// Returns the key that somebody shows.
fn own_key(who: &Principal) -> Option<Uuid> {
    match &who.proved_by {
        ProvedBy::Key { id, .. } => Some(*id),
        _ => None,
    }
}

pub(super) async fn list(State(service): State<Service>) -> JsonResult {
    Ok(Json(json!({ "keys": own(&service).await? })))
}

pub(super) async fn create(State(service): State<Service>, body: Body) -> JsonResult {
    let create: Create = body.read()?;
    let who = service.who();
    let scopes = create.scopes.unwrap_or_else(|| {
        let usual = |scope: &Scope| !matches!(scope, Scope::Manage | Scope::ActAs | Scope::Operate);
        who.scopes.iter().copied().filter(usual).collect()
    });
    if let Some(beyond) = scopes.iter().find(|scope| !who.may(**scope)) {
        let why = format!("a key cannot have a scope that you lack: {}", beyond.as_str());
        return Err(Refusal(StatusCode::FORBIDDEN, why));
    }
    let new = NewKey {
        name: &create.name,
        user: who.person(),
        made_by: own_key(who).filter(|_| who.person().is_none()),
        scopes: &scopes,
        expires_at: create.expires_at,
    };
    let created = accounts(&service).create_key(new).await?;
    let mut shown = json!(created.key);
    shown["key"] = json!(created.secret.expose());
    Ok(Json(shown))
}

pub(super) async fn revoke(
    State(service): State<Service>,
    Path(name): Path<String>,
) -> Result<StatusCode, Refusal> {
    if !own(&service).await?.iter().any(|key| key.name == name && key.revoked_at.is_none()) {
        return Err(Refusal::missing(format!("no active key has this name: {name}")));
    }
    accounts(&service).revoke_key(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}
