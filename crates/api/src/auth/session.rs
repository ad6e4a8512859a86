//! Registration, login and logout, and the ways to log in.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use perihelion_people::{Error, Principal, ProvedBy, Session, User};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::credential::{CSRF, SESSION, cookie};
use super::gate::{Gate, REGISTERED};
use super::limits;
use super::oidc::Provider;
use crate::http::routing::{Routes, get, post};
use crate::http::{Body, JsonResult, Refusal, ResponseResult};
use perihelion_engine::clock;
use perihelion_service::Service;

pub(super) fn routes() -> Routes<Arc<Gate>> {
    Routes::new()
        .route("/v1/auth/register", post(register))
        .route("/v1/auth/login", post(login))
        .route("/v1/auth/ways", get(ways))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Given {
    name: String,
    password: String,
    /// The service's own by default.
    tenant: Option<String>,
}

/// Returns how people can log in, for the login form.
async fn ways(gate: State<Arc<Gate>>) -> JsonResult {
    let has_users = gate.service.people().has_passwords(gate.service.tenant()).await?;
    Ok(Json(json!({
        "password": has_users || gate.can_register(),
        "registration": gate.can_register(),
        "single_sign_on": gate.provider.as_ref().map(Provider::name),
    })))
}

async fn register(
    gate: State<Arc<Gate>>,
    headers: HeaderMap,
    Body(given): Body<Given>,
) -> ResponseResult {
    if !gate.can_register() {
        let why = "registration is disabled (it needs serve.registration, and no other issuer ([serve.jwt]) or Auth handler); ask the operator to \
                   add a user with `perihelion users add NAME`";
        return Err(Refusal(StatusCode::FORBIDDEN, why.to_owned()));
    }
    let own = gate.service.tenant();
    if given.tenant.as_ref().is_some_and(|tenant| tenant != own) {
        let why = "users can register only in the service's own tenant";
        return Err(Refusal(StatusCode::FORBIDDEN, why.to_owned()));
    }
    if let Some(refused) = gate.logins.refusal(own, &given.name) {
        return Ok(refused);
    }
    let people = gate.service.people();
    let now = clock::now();
    let user = people.register(own, &given.name, &given.password, &REGISTERED, now).await;
    entered(&gate, &headers, user).await
}

async fn login(
    gate: State<Arc<Gate>>,
    headers: HeaderMap,
    Body(given): Body<Given>,
) -> ResponseResult {
    let tenant = given.tenant.as_deref().unwrap_or_else(|| gate.service.tenant());
    if let Some(refused) = gate.logins.refusal(tenant, &given.name) {
        return Ok(refused);
    }
    let people = gate.service.people();
    let user = people.check_password(tenant, &given.name, &given.password).await;
    entered(&gate, &headers, user).await
}

/// Begins the session of an authenticated user, or returns when another attempt is possible.
async fn entered(gate: &Gate, headers: &HeaderMap, user: Result<User, Error>) -> ResponseResult {
    match user {
        Ok(user) => begun(gate, headers, &user).await,
        Err(Error::Busy) => Ok(limits::refused("concurrent logins", 1)),
        Err(error) => Err(error.into()),
    }
}

async fn begun(gate: &Gate, headers: &HeaderMap, user: &User) -> ResponseResult {
    let (session, cookies) = begin(gate, headers, user).await?;
    let who = Principal {
        tenant: user.tenant.clone(),
        user: user.name.clone(),
        scopes: user.scopes.clone(),
        proved_by: ProvedBy::Session,
    };
    let mut about = shown(&who);
    about["csrf_token"] = json!(session.csrf.expose());
    about["expires_at"] = json!(session.expires_at);
    Ok(with_cookies(Json(about).into_response(), &cookies))
}

pub(super) async fn begin(
    gate: &Gate,
    headers: &HeaderMap,
    user: &User,
) -> Result<(Session, Vec<String>), Refusal> {
    let people = gate.service.people();
    let session = people.begin_session(user, gate.lasts, clock::now()).await?;
    let seconds = gate.lasts.num_seconds();
    let ends = format!(
        "; Path=/; SameSite=Strict; Max-Age={seconds}{}",
        secure(gate.provider.as_ref(), headers)
    );
    let cookies = vec![
        format!("{SESSION}={}{ends}; HttpOnly", session.cookie.expose()),
        format!("{CSRF}={}{ends}", session.csrf.expose()),
    ];
    Ok((session, cookies))
}

/// Returns the attribute that keeps a cookie off unencrypted connections, if the browser's connection is encrypted: by
/// what a proxy says, or by the address of the service.
pub(super) fn secure(provider: Option<&Provider>, headers: &HeaderMap) -> &'static str {
    let scheme = headers.get("x-forwarded-proto").and_then(|scheme| scheme.to_str().ok());
    let is_forwarded = scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
    let is_public = provider.is_some_and(|provider| provider.home().starts_with("https:"));
    if is_forwarded || is_public { "; Secure" } else { "" }
}

pub(super) fn with_cookies(mut response: Response, cookies: &[String]) -> Response {
    let headers = response.headers_mut();
    for cookie in cookies {
        if let Ok(cookie) = HeaderValue::from_str(cookie) {
            headers.append(header::SET_COOKIE, cookie);
        }
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Ends the session; a user of an identity provider learns where to end the provider's, too.
pub(super) async fn logout(service: State<Service>, headers: HeaderMap) -> ResponseResult {
    let is_of_provider = match cookie(&headers, SESSION) {
        Some(cookie) => service.people().end_session(cookie).await?,
        None => false,
    };
    let gone = [SESSION, CSRF].map(|name| format!("{name}=; Path=/; SameSite=Strict; Max-Age=0"));
    let response = if is_of_provider {
        Json(json!({ "logout_url": "v1/auth/oidc/logout" })).into_response()
    } else {
        StatusCode::NO_CONTENT.into_response()
    };
    Ok(with_cookies(response, &gone))
}

pub(super) async fn me(service: State<Service>) -> JsonResult {
    let mut about = shown(service.who());
    about["limits"] = json!(service.limits().await?);
    about["demo"] = json!(service.runtime().is_demo());
    Ok(Json(about))
}

fn shown(who: &Principal) -> Value {
    json!({
        "user": who.user,
        "tenant": who.tenant,
        "scopes": who.scopes,
        "proved_by": match who.proved_by {
            ProvedBy::Loopback => "loopback",
            ProvedBy::Key { .. } => "key",
            ProvedBy::Session => "session",
            ProvedBy::Token => "token",
        },
    })
}
