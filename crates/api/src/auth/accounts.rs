//! The API keys of the caller; for managers of a tenant all of its keys, its users, and the audit log.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use perihelion_people::{ApiKey, AuditQuery, NewKey, Principal, ProvedBy, Scope, normal_name};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::http::{Body, JsonResult, Query, Raw, Refusal, StatusResult, read_object};
use perihelion_runtime::Accounts;
use perihelion_service::Service;

/// Returns the users and keys of the tenant of the caller, who manages them.
fn accounts(service: &Service) -> Accounts {
    Accounts::new(service.people().clone(), service.tenant(), &service.who().user)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateKey {
    name: String,
    /// The caller's scopes by default, without `manage`, `act_as` and `operate`.
    #[schemars(with = "Option<Vec<String>>")]
    scopes: Option<Vec<Scope>>,
    expires_at: Option<DateTime<Utc>>,
}

/// Lists the keys that the caller can manage.
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

fn own_key(who: &Principal) -> Option<Uuid> {
    match &who.proved_by {
        ProvedBy::Key { id, .. } => Some(*id),
        _ => None,
    }
}

pub(super) async fn keys(service: State<Service>) -> JsonResult {
    Ok(Json(json!({ "keys": own(&service).await? })))
}

pub(super) async fn create_key(
    service: State<Service>,
    Body(create): Body<CreateKey>,
) -> JsonResult {
    let who = service.who();
    let scopes = create.scopes.unwrap_or_else(|| {
        let usual = |scope: &Scope| !matches!(scope, Scope::Manage | Scope::ActAs | Scope::Operate);
        who.scopes.iter().copied().filter(usual).collect()
    });
    permit_all(who, &scopes)?;
    let accounts = accounts(&service);
    let mut expires_at = create.expires_at;
    if let Some(own) = own_key(who) {
        let keys = accounts.keys().await?;
        let ends = keys.iter().find(|key| key.id == own).and_then(|key| key.expires_at);
        // No key outlives the one that made it.
        expires_at = expires_at.into_iter().chain(ends).min();
    }
    let new = NewKey {
        name: &create.name,
        user: who.person(),
        made_by: own_key(who).filter(|_| who.person().is_none()),
        scopes: &scopes,
        expires_at,
    };
    let created = accounts.create_key(new).await?;
    let mut shown = json!(created.key);
    shown["key"] = json!(created.secret.expose());
    Ok(Json(shown))
}

pub(super) async fn revoke_key(service: State<Service>, Path(name): Path<String>) -> StatusResult {
    if !own(&service).await?.iter().any(|key| key.name == name && key.revoked_at.is_none()) {
        return Err(Refusal::missing(format!("no active key has this name: {name}")));
    }
    accounts(&service).revoke_key(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn users(service: State<Service>) -> JsonResult {
    service.permit(Scope::Manage)?;
    Ok(Json(json!({ "users": accounts(&service).users().await? })))
}

/// Refuses to give scopes that the caller lacks.
fn permit_all(who: &Principal, scopes: &[Scope]) -> Result<(), Refusal> {
    let Some(beyond) = scopes.iter().find(|scope| !who.may(**scope)) else { return Ok(()) };
    let why = format!("you cannot give a scope that you lack: {}", beyond.as_str());
    Err(Refusal(StatusCode::FORBIDDEN, why))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddUser {
    name: String,
    password: String,
    /// `read`, `run` and `approve` by default; `act_as` is only for keys.
    #[schemars(with = "Option<Vec<String>>")]
    scopes: Option<Vec<Scope>>,
}

/// Adds a user, who logs in with the password.
pub(super) async fn add_user(service: State<Service>, Raw(body, _): Raw<AddUser>) -> JsonResult {
    service.permit(Scope::Manage)?;
    let AddUser { name, password, scopes } = read_object(body)?;
    let scopes = scopes.unwrap_or_else(|| vec![Scope::Read, Scope::Run, Scope::Approve]);
    permit_for_user(service.who(), &scopes)?;
    Ok(Json(json!(accounts(&service).add_user(&name, &password, &scopes).await?)))
}

fn permit_for_user(who: &Principal, scopes: &[Scope]) -> Result<(), Refusal> {
    permit_all(who, scopes)?;
    if scopes.contains(&Scope::ActAs) {
        let why = "act_as is only for keys without a user; users always act for themselves";
        return Err(Refusal::invalid(why));
    }
    Ok(())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeUser {
    #[schemars(with = "Vec<String>")]
    scopes: Vec<Scope>,
}

/// Returns whether a name is the caller's, in any letter case.
fn is_self(service: &Service, name: &str) -> bool {
    normal_name(&service.who().user) == normal_name(name)
}

/// Changes the scopes of a user; scopes that the user has and the caller lacks can stay.
pub(super) async fn change_user(
    service: State<Service>,
    Path(name): Path<String>,
    Raw(body, _): Raw<ChangeUser>,
) -> JsonResult {
    service.permit(Scope::Manage)?;
    let name = normal_name(&name);
    if is_self(&service, &name) {
        let why = "you cannot change your own scopes; ask another user with the scope manage";
        return Err(Refusal(StatusCode::CONFLICT, why.to_owned()));
    }
    let ChangeUser { scopes } = read_object(body)?;
    let accounts = accounts(&service);
    let users = accounts.users().await?;
    let had = users.iter().find(|user| user.name == name).map_or(&[][..], |user| &user.scopes);
    let new: Vec<Scope> = scopes.iter().copied().filter(|scope| !had.contains(scope)).collect();
    permit_for_user(service.who(), &new)?;
    Ok(Json(json!(accounts.change_scopes(&name, &scopes).await?)))
}

/// Disables a user and ends the runs of their threads; the caller cannot disable themselves.
pub(super) async fn disable_user(
    service: State<Service>,
    Path(name): Path<String>,
) -> StatusResult {
    service.permit(Scope::Manage)?;
    if is_self(&service, &name) {
        let why = "you cannot disable yourself; ask another user with the scope manage";
        return Err(Refusal(StatusCode::CONFLICT, why.to_owned()));
    }
    accounts(&service).disable_user(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct AuditPage {
    thread: Option<Uuid>,
    before: Option<DateTime<Utc>>,
    before_id: Option<Uuid>,
    limit: Option<u32>,
}

pub(super) async fn audit(service: State<Service>, Query(which): Query<AuditPage>) -> JsonResult {
    service.permit(Scope::Manage)?;
    let AuditPage { thread, before, before_id, limit } = which;
    let wanted = AuditQuery { thread, before, before_id, limit };
    let entries = service.people().audit(service.tenant(), &wanted).await?;
    Ok(Json(json!({ "entries": entries })))
}
