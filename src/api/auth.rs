//! Lets in who knows the token.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};

use super::agent_server::Refusal;
use crate::config::Token;

/// Puts the check of a token before routes.
pub(super) fn behind(token: Token, router: Router) -> Router {
    let wanted: Arc<[u8; 32]> = Arc::new(*blake3::hash(token.expose().as_bytes()).as_bytes());
    router.layer(middleware::from_fn(move |request, next| {
        let wanted = Arc::clone(&wanted);
        async move { check(&wanted, request, next).await }
    }))
}

async fn check(wanted: &[u8; 32], request: Request, next: Next) -> Response {
    let given = given(request.headers());
    // Digests are compared, so that the time it takes says nothing of the token.
    let is_known =
        given.is_some_and(|given| blake3::hash(given.as_bytes()) == blake3::Hash::from(*wanted));
    match is_known {
        true => next.run(request).await,
        false => {
            let why = "send the token as x-api-key, or as Authorization: Bearer";
            let mut refused = Refusal(StatusCode::UNAUTHORIZED, why.into()).into_response();
            refused
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
            refused
        }
    }
}

fn given(headers: &HeaderMap) -> Option<&str> {
    let key = headers.get("x-api-key").and_then(|key| key.to_str().ok());
    let bearer = || headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ");
    key.or_else(bearer).map(str::trim)
}
