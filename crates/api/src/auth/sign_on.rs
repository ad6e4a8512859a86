//! Single sign-on: how a browser is led to the identity provider and back.
//!
//! A login is one secret in the browser's cookie, so that any process of a service can complete it. Invariant: it leads
//! nowhere but to the provider and to a view of the web UI.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use perihelion_people::LoginAttempt;
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

use super::credential::cookie;
use super::gate::Gate;
use super::oidc::{Failure, Provider, Returned};
use super::session;
use crate::http::routing::{Routes, get};
use crate::http::{Query, Refusal};
use perihelion_http::reach::with_causes;

const LOGIN: &str = "perihelion_login";

/// The cookie with the view that it leads to.
const NEXT: &str = "perihelion_login_next";

/// Seconds for a login at the provider.
const LASTS: u32 = 600;

/// Makes the routes for browsers without a session.
pub(super) fn routes() -> Routes<Arc<Gate>> {
    Routes::new()
        .route("/v1/auth/oidc/login", get(login))
        .route("/v1/auth/oidc/callback", get(callback))
        .route("/v1/auth/oidc/logout", get(logout))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Wanted {
    /// The view to open afterwards, as the part of its address from `#` on.
    next: Option<String>,
}

/// Returns the view that a login leads to: nothing but what follows `#`, so that it never leaves the web UI.
fn view(next: Option<&str>) -> &str {
    let is_view = |next: &&str| {
        next.starts_with("#/")
            && next.len() <= 1_000
            && next.chars().all(|c| c.is_ascii_graphic() && c != ';')
    };
    next.filter(is_view).unwrap_or("#/chat")
}

fn redirect(address: &str, cookies: &[String]) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(address) = HeaderValue::from_str(address) {
        response.headers_mut().insert(header::LOCATION, address);
    }
    // The address of this page contains a code.
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    session::with_cookies(response, cookies)
}

fn provider(gate: &Gate) -> Result<&Provider, Refusal> {
    let missing = || Refusal::missing("single sign-on is not configured; set [serve.oidc]");
    gate.provider.as_ref().ok_or_else(missing)
}

pub(super) async fn login(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
    Query(wanted): Query<Wanted>,
) -> Result<Response, Refusal> {
    let provider = provider(&gate)?;
    let secure = session::secure(Some(provider), &headers);
    let attempt = LoginAttempt::begin()?;
    let address = match provider.address(&attempt).await {
        Ok(address) => address,
        Err(failure) => return Ok(back(provider, &failure, secure)),
    };
    let next = view(wanted.next.as_deref());
    let cookies = [(LOGIN, attempt.cookie()), (NEXT, next)];
    Ok(redirect(address.as_str(), &cookies.map(|(name, value)| own(name, value, LASTS, secure))))
}

/// Begins a session for a browser that comes back from the provider.
pub(super) async fn callback(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
    Query(returned): Query<Returned>,
) -> Result<Response, Refusal> {
    let provider = provider(&gate)?;
    let secure = session::secure(Some(provider), &headers);
    let attempt = cookie(&headers, LOGIN).and_then(LoginAttempt::of_cookie);
    let user = match provider.user(gate.service.people(), attempt, returned).await {
        Ok(user) => user,
        Err(failure) => return Ok(back(provider, &failure, secure)),
    };
    let (_, mut cookies) = session::begin(&gate, &headers, &user).await?;
    cookies.extend(over(secure));
    Ok(redirect(&format!("{}/{}", provider.home(), view(cookie(&headers, NEXT))), &cookies))
}

/// Sends a browser that has logged out to the provider, which ends its own session.
pub(super) async fn logout(State(gate): State<Arc<Gate>>) -> Result<Response, Refusal> {
    let provider = provider(&gate)?;
    let address = provider.logout_address().await;
    Ok(redirect(address.as_ref().map_or(provider.home(), Url::as_str), &[]))
}

/// Leads a browser to the login form, which says why its login failed.
fn back(provider: &Provider, failure: &Failure, secure: &str) -> Response {
    if let Failure::Provider(error) = failure {
        tracing::warn!(error = %with_causes(error.as_ref()), "a single sign-on failed at the provider");
    }
    let address = format!("{}/#/chat?login_problem={}", provider.home(), failure.word());
    redirect(&address, &over(secure))
}

/// Returns a cookie that is also sent when the provider leads the browser here.
fn own(name: &str, value: &str, seconds: u32, secure: &str) -> String {
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}")
}

/// Returns the cookies that end a login.
fn over(secure: &str) -> [String; 2] {
    [LOGIN, NEXT].map(|name| own(name, "", 0, secure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_to_a_view_and_nowhere_else() {
        assert_eq!(view(Some("#/chat/1?x=2")), "#/chat/1?x=2");
        for elsewhere in [
            "https://evil.example",
            "//evil.example",
            "/\\evil.example",
            "#//\u{e9}",
            "chat",
            "#/a\r\nSet-Cookie: x=1",
            "#/a;Path=/",
            "",
        ] {
            assert_eq!(view(Some(elsewhere)), "#/chat", "{elsewhere}");
        }
        assert_eq!(view(Some(&format!("#/{}", "x".repeat(2_000)))), "#/chat");
        assert_eq!(view(None), "#/chat");
    }
}
