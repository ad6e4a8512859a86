//! Why a request is not answered, in the shape of either generation.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use perihelion_runtime as runtime;

/// A request that is not answered.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    message: String,
    generation: Generation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    V1,
    V3,
}

impl Refusal {
    pub(super) fn malformed(generation: Generation, name: &str, value: &str, wanted: &str) -> Self {
        let message = format!("malformed parameter {name}, expected {wanted}: {value}");
        Self { status: StatusCode::BAD_REQUEST, message, generation }
    }

    pub(super) fn unknown(generation: Generation, message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, message: message.into(), generation }
    }

    /// Makes one of a failure of the store, which is told in the log as well.
    pub(super) fn failed(generation: Generation, error: &runtime::Error) -> Self {
        tracing::warn!(%error, "failed to read traces");
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self { status, message: error.to_string(), generation }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let code = self.status.as_u16();
        let body = match self.generation {
            Generation::V1 => json!({
                "data": null, "total": 0, "limit": 0, "offset": 0,
                "errors": [{ "code": code, "msg": self.message }],
            }),
            Generation::V3 => json!({ "error": { "httpCode": code, "message": self.message } }),
        };
        (self.status, Json(body)).into_response()
    }
}
