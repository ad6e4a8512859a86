//! Refusals in the form that OpenAI's clients expect.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::agent_server::{self, Refusal as Plain};

/// When a client is to come again where the service cannot answer for now, in seconds.
const AGAIN_SEC: u32 = 1;

/// A refusal: a status and why.
#[derive(Debug)]
pub(super) struct Refusal(pub StatusCode, pub String);

impl Refusal {
    pub(super) fn invalid(why: impl Into<String>) -> Self {
        Self(StatusCode::BAD_REQUEST, why.into())
    }

    pub(super) fn missing(what: impl Into<String>) -> Self {
        Self(StatusCode::NOT_FOUND, what.into())
    }

    /// Shows it as it stands in a body, and in a stream.
    pub(super) fn shown(&self) -> Value {
        let kind = if self.0.is_server_error() { "server_error" } else { "invalid_request_error" };
        let error = json!({ "message": self.1, "type": kind, "param": null, "code": null });
        json!({ "error": error })
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.0, Json(self.shown())).into_response();
        if self.0 == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, AGAIN_SEC.into());
        }
        response
    }
}

impl From<Plain> for Refusal {
    fn from(Plain(status, why): Plain) -> Self {
        let status = if status == StatusCode::UNPROCESSABLE_ENTITY {
            StatusCode::BAD_REQUEST
        } else {
            status
        };
        Self(status, why)
    }
}

macro_rules! as_plain {
    ($($error:ty),+) => {$(
        impl From<$error> for Refusal {
            fn from(error: $error) -> Self {
                Plain::from(error).into()
            }
        }
    )+};
}
as_plain!(perihelion_service::Error, perihelion_service::kept::Error, perihelion_runtime::Error);

/// A JSON body.
pub(super) struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let kind = request
            .headers()
            .get("content-type")
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default();
        if !kind.to_ascii_lowercase().starts_with("application/json") {
            let why = "the body must be sent as application/json";
            return Err(Refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, why.into()));
        }
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|error| Refusal(error.status(), error.body_text()))?;
        let read = agent_server::json(&bytes).map_err(Refusal::invalid)?;
        serde_json::from_value(read).map(Self).map_err(|error| Refusal::invalid(error.to_string()))
    }
}
