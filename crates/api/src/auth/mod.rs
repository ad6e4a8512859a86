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

use axum::Router;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

pub(super) use gate::Gate;
pub(crate) use hosted::without_forged_users;
pub(crate) use limits::{Place, Places};
pub(crate) use watch::Ends;

use crate::http::Forms;
use crate::http::Refusal;
use crate::http::routing::{boxed, delete, get, post};
use perihelion_service::Service;

/// Makes the routes for authenticated callers: who they are, their keys, and the end of their session; and the routes
/// for managers.
pub(super) fn router(service: Service) -> Router {
    Router::new()
        .route("/v1/auth/me", get(session::me))
        .route("/v1/auth/logout", post(session::logout))
        .route("/v1/keys", get(accounts::keys).post(boxed(accounts::create_key)))
        .route("/v1/keys/{name}", delete(accounts::revoke_key))
        .route("/v1/users", get(accounts::users).post(boxed(accounts::add_user)))
        .route(
            "/v1/users/{name}",
            delete(accounts::disable_user).patch(boxed(accounts::change_user)),
        )
        .route("/v1/audit", get(accounts::audit))
        .with_state(service)
}

fn unknown(why: impl std::fmt::Display) -> Response {
    let mut refused = Refusal(StatusCode::UNAUTHORIZED, why.to_string()).into_response();
    refused.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    refused
}

pub(super) fn forms(forms: &mut Forms) {
    forms.body::<session::Given>("post /v1/auth/register");
    forms.body::<session::Given>("post /v1/auth/login");
    forms.query::<sign_on::Wanted>("get /v1/auth/oidc/login");
    forms.query::<oidc::Returned>("get /v1/auth/oidc/callback");
    forms.body::<accounts::CreateKey>("post /v1/keys");
    forms.body::<accounts::AddUser>("post /v1/users");
    forms.body::<accounts::ChangeUser>("patch /v1/users/{name}");
    forms.query::<accounts::AuditPage>("get /v1/audit");
}
