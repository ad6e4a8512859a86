//! Who asks: token, API key, session or another issuer's token, and what they may see and do.
//!
//! Enter at [`Gate::before`], which stands before the routes of all faces. Invariant: a request reaches only routes over
//! the service as its [`Principal`] sees it, so that no handler can name another tenant's thread; what a credential
//! holds open ends within a second of its end. Deliberately absent: storage, which is the crate `perihelion_people`'s.

mod accounts;
mod credential;
mod gate;
mod issuer;
mod limits;
mod session;
mod watch;

use axum::Router;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

pub(super) use gate::{Gate, Setup};
pub(crate) use watch::Ends;

use crate::http::Forms;
use crate::http::Refusal;
use crate::http::routing::{boxed, delete, get, post};
use perihelion_service::Service;

/// Makes the routes for the one who is known already: who they are, their keys, and the end of their session; and what those who manage see.
pub(super) fn router(service: Service) -> Router {
    Router::new()
        .route("/v1/auth/me", get(session::me))
        .route("/v1/auth/logout", post(session::logout))
        .route("/v1/keys", get(accounts::keys).post(boxed(accounts::create_key)))
        .route("/v1/keys/{name}", delete(accounts::revoke_key))
        .route("/v1/users", get(accounts::users))
        .route("/v1/users/{name}", delete(accounts::disable_user))
        .route("/v1/audit", get(accounts::audit))
        .with_state(service)
}

/// Refuses somebody who did not prove who they are.
fn unknown(why: impl std::fmt::Display) -> Response {
    let mut refused = Refusal(StatusCode::UNAUTHORIZED, why.to_string()).into_response();
    refused.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    refused
}

pub(super) fn forms(forms: &mut Forms) {
    forms.body::<session::Given>("post /v1/auth/register");
    forms.body::<session::Given>("post /v1/auth/login");
    forms.body::<accounts::CreateKey>("post /v1/keys");
    forms.query::<accounts::AuditPage>("get /v1/audit");
}
