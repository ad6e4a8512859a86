//! Refusals, in the forms of both bindings.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::agent_server::Refusal as Plain;

/// Why a request was refused.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    TaskNotFound(String),
    TaskNotCancelable(String),
    Unsupported(String),
    ContentType(String),
    Version(String),
    Invalid(String),
    UnknownMethod(String),
    Parse(String),
    Failed(String),
}

impl Refusal {
    /// Returns the code of JSON-RPC, the status and its name of REST, the reason, and what is wrong.
    fn parts(&self) -> (i32, StatusCode, &'static str, &'static str, String) {
        let (code, status, name, reason) = self.codes();
        (code, status, name, reason, self.to_string())
    }

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

    /// Shows it as an answer of JSON-RPC.
    pub(super) fn rpc(&self, id: &Value) -> Value {
        let (code, _, _, reason, message) = self.parts();
        let error = json!({ "code": code, "message": message, "data": Self::details(reason) });
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TaskNotFound(id) => write!(f, "Task not found: {id}"),
            Self::TaskNotCancelable(id) => write!(f, "Task cannot be canceled: {id}"),
            Self::Version(found) => {
                write!(f, "A2A version is not supported: {found}; there is 1.0")
            }
            Self::UnknownMethod(name) => write!(f, "Method not found: {name}"),
            Self::Unsupported(why)
            | Self::ContentType(why)
            | Self::Invalid(why)
            | Self::Parse(why)
            | Self::Failed(why) => f.write_str(why),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (_, status, name, reason, message) = self.parts();
        let error = json!({ "code": status.as_u16(), "status": name, "message": message, "details": Self::details(reason) });
        (status, Json(json!({ "error": error }))).into_response()
    }
}

impl From<Plain> for Refusal {
    fn from(Plain(status, why): Plain) -> Self {
        if status.is_server_error() { Self::Failed(why) } else { Self::Invalid(why) }
    }
}

impl From<perihelion_service::Error> for Refusal {
    fn from(error: perihelion_service::Error) -> Self {
        Plain::from(error).into()
    }
}

impl From<perihelion_service::kept::Error> for Refusal {
    fn from(error: perihelion_service::kept::Error) -> Self {
        Plain::from(error).into()
    }
}
