//! Refusals, in the forms of both bindings.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::http::Refusal as Plain;

#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("Task not found: {0}")]
    TaskNotFound(String),
    #[error("Task cannot be canceled: {0}")]
    TaskNotCancelable(String),
    #[error("{0}")]
    Unsupported(String),
    #[error("{0}")]
    ContentType(String),
    /// An unsupported version; a client that names none uses 0.3.
    #[error("A2A version is not supported: {0}; send the header A2A-Version: 1.0")]
    Version(String),
    #[error("{0}")]
    Invalid(String),
    #[error(
        "Invalid request: send an object with \"jsonrpc\": \"2.0\", a method, and an ID that is a text or a number"
    )]
    InvalidRequest,
    #[error("Method not found: {0}")]
    UnknownMethod(String),
    #[error("{0}")]
    Parse(String),
    #[error("{0}")]
    Failed(String),
}

impl Refusal {
    pub(super) fn invalid(why: impl ToString) -> Self {
        Self::Invalid(why.to_string())
    }

    /// Returns the code of JSON-RPC, the status and its name of REST, and the reason.
    fn codes(&self) -> (i32, StatusCode, &'static str, &'static str) {
        let bad = StatusCode::BAD_REQUEST;
        let precondition = "FAILED_PRECONDITION";
        match self {
            Self::TaskNotFound(_) => (-32001, StatusCode::NOT_FOUND, "NOT_FOUND", "TASK_NOT_FOUND"),
            Self::TaskNotCancelable(_) => (-32002, bad, precondition, "TASK_NOT_CANCELABLE"),
            Self::Unsupported(_) => (-32004, bad, precondition, "UNSUPPORTED_OPERATION"),
            Self::ContentType(_) => (-32005, bad, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
            Self::Version(_) => (-32009, bad, precondition, "VERSION_NOT_SUPPORTED"),
            Self::Invalid(_) => (-32602, bad, "INVALID_ARGUMENT", "INVALID_PARAMS"),
            Self::InvalidRequest => (-32600, bad, "INVALID_ARGUMENT", "INVALID_REQUEST"),
            Self::UnknownMethod(_) => {
                (-32601, StatusCode::NOT_FOUND, "NOT_FOUND", "METHOD_NOT_FOUND")
            }
            Self::Parse(_) => (-32700, bad, "INVALID_ARGUMENT", "PARSE_ERROR"),
            Self::Failed(_) => (-32603, StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", "INTERNAL"),
        }
    }

    fn details(reason: &str) -> Value {
        json!([{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org" }])
    }

    pub(super) fn rpc(&self, id: &Value) -> Value {
        let (code, _, _, reason) = self.codes();
        let error =
            json!({ "code": code, "message": self.to_string(), "data": Self::details(reason) });
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (_, status, name, reason) = self.codes();
        let error = json!({
            "code": status.as_u16(), "status": name, "message": self.to_string(), "details": Self::details(reason),
        });
        (status, Json(json!({ "error": error }))).into_response()
    }
}

impl<E: Into<Plain>> From<E> for Refusal {
    fn from(error: E) -> Self {
        let Plain(status, why) = error.into();
        match status {
            StatusCode::NOT_FOUND => Self::TaskNotFound(why),
            status if status.is_server_error() => Self::Failed(why),
            _ => Self::Invalid(why),
        }
    }
}
