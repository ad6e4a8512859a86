//! Who asks: token, API key, session or another issuer's token, and what they may see and do.
//!
//! Enter at [`Gate::before`], which stands before the routes of all faces. Invariant: a request reaches only routes over
//! the service as its [`Principal`] sees it, so that no handler can name another tenant's thread; what a credential
//! holds open ends within a second of its end. Deliberately absent: storage, which is the crate `perihelion_people`'s.

mod credential;
mod gate;
mod issuer;
mod keys;
mod logins;
mod open;
mod rates;
mod scope;
mod session;
mod users;
mod watch;

use axum::Router;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

pub(super) use gate::{Gate, Setup};
pub(crate) use watch::Ends;

use crate::http::Forms;
use crate::http::Refusal;
use crate::http::routing::{boxed, delete, get, post};
use perihelion_runtime::Accounts;
use perihelion_service::Service;

/// Makes the routes for the one who is known already: who they are, their keys, and the end of their session.
pub(super) fn router(service: Service) -> Router {
    Router::new()
        .route("/v1/auth/me", get(session::me))
        .route("/v1/auth/logout", post(session::logout))
        .route("/v1/keys", get(keys::list).post(boxed(keys::create)))
        .route("/v1/keys/{name}", delete(keys::revoke))
        .route("/v1/users", get(users::list))
        .route("/v1/users/{name}", delete(users::disable))
        .with_state(service)
}

/// Returns the users and keys of the tenant of the one who asks, who looks after them.
fn accounts(service: &Service) -> Accounts {
    Accounts::new(service.people().clone(), service.tenant(), &service.who().user)
}

/// Refuses somebody who did not prove who they are.
fn unknown(why: impl std::fmt::Display) -> Response {
    let mut refused = Refusal(StatusCode::UNAUTHORIZED, why.to_string()).into_response();
    refused.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    refused
}

/// Names what the routes read.
pub(super) fn forms(forms: &mut Forms) {
    forms.body::<session::Given>("post /v1/auth/register");
    forms.body::<session::Given>("post /v1/auth/login");
    forms.body::<keys::Create>("post /v1/keys");
}
