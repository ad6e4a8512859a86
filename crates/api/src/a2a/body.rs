//! The bodies of requests: JSON in the shapes of the protocol.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::refusal::Refusal;
use crate::http::{Forms, Input, typed};

pub(super) struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        check_kind(request.headers()).map_err(IntoResponse::into_response)?;
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(IntoResponse::into_response)?;
        let read = crate::http::json(&bytes).map_err(Refusal::invalid);
        let read = read.and_then(|body| typed("the body", body).map_err(Refusal::invalid));
        read.map(Self).map_err(IntoResponse::into_response)
    }
}

impl<T: JsonSchema> Input for Body<T> {
    fn describe(forms: &mut Forms, route: &str) {
        forms.body::<T>(route);
    }
}

/// Rejects a body that declares a type other than JSON.
pub(super) fn check_kind(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.get(header::CONTENT_TYPE) {
        Some(kind) if !crate::http::is_json(headers) => {
            let named = kind.to_str().unwrap_or_default();
            Err(Refusal::ContentType(format!("the body must be JSON, not {named}")))
        }
        _ => Ok(()),
    }
}

pub(super) fn parameters<T: DeserializeOwned>(params: Value) -> Result<T, Refusal> {
    typed("the parameters", params).map_err(Refusal::invalid)
}
