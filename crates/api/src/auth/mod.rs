//! Authentication: token, API key, session or another issuer's token, and the permissions of callers.
//!
//! Enter at [`Gate::before`], which wraps the routes of all APIs. Invariant: a request reaches only routes over the
//! service as its [`Principal`] sees it, so no handler can name another tenant's thread. Streams and sockets of a
//! credential end within a second of its end. Deliberately absent: storage, which is the crate `perihelion_people`'s.

mod accounts;
mod credential;
mod gate;
mod hosted;
mod issuer;
mod limits;
mod oidc;
mod session;
mod sign_on;
mod watch;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

pub(super) use gate::Gate;
pub(crate) use hosted::without_forged_users;
pub(crate) use limits::{Place, Places};
pub use oidc::check_issuers;
pub(crate) use watch::Ends;

use crate::http::routing::{Routes, delete, get, post};
use crate::http::{Forms, Refusal};
use perihelion_service::Service;

/// Makes the routes for authenticated callers: who they are, their keys, and the end of their session; and the routes
/// for managers.
pub(super) fn routes() -> Routes<Service> {
    Routes::new()
        .route("/v1/auth/me", get(session::me))
        .route("/v1/auth/logout", post(session::logout))
        .route("/v1/keys", get(accounts::keys).post(accounts::create_key))
        .route("/v1/keys/{name}", delete(accounts::revoke_key))
        .route("/v1/users", get(accounts::users).post(accounts::add_user))
        .route("/v1/users/{name}", delete(accounts::disable_user).patch(accounts::change_user))
        .route("/v1/audit", get(accounts::audit))
}

fn unknown(why: impl std::fmt::Display) -> Response {
    let mut refused = Refusal(StatusCode::UNAUTHORIZED, why.to_string()).into_response();
    refused.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    refused
}

pub(super) fn describe(forms: &mut Forms) {
    routes().describe(forms);
    session::routes().describe(forms);
    sign_on::routes().describe(forms);
}
