//! Refusals, in the forms of both bindings.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::api::agent_server::Refusal as Plain;

/// Why a request was refused.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    TaskNotFound(String),
    TaskNotCancelable(String),
    Unsupported(String),
    Version(String),
    Invalid(String),
    UnknownMethod(String),
    Parse(String),
    Failed(String),
}

impl Refusal {
    fn parts(&self) -> (i32, StatusCode, &'static str, String) {
        match self {
            Self::TaskNotFound(id) => {
                (-32001, StatusCode::NOT_FOUND, "TASK_NOT_FOUND", format!("Task not found: {id}"))
            }
            Self::TaskNotCancelable(id) => (
                -32002,
                StatusCode::CONFLICT,
                "TASK_NOT_CANCELABLE",
                format!("Task cannot be canceled: {id}"),
            ),
            Self::Unsupported(what) => {
                (-32004, StatusCode::BAD_REQUEST, "UNSUPPORTED_OPERATION", what.clone())
            }
            Self::Version(found) => (
                -32009,
                StatusCode::BAD_REQUEST,
                "VERSION_NOT_SUPPORTED",
                format!("A2A version is not supported: {found}; there is 1.0"),
            ),
            Self::Invalid(why) => (-32602, StatusCode::BAD_REQUEST, "INVALID_PARAMS", why.clone()),
            Self::UnknownMethod(name) => (
                -32601,
                StatusCode::NOT_FOUND,
                "METHOD_NOT_FOUND",
                format!("Method not found: {name}"),
            ),
            Self::Parse(why) => (-32700, StatusCode::BAD_REQUEST, "PARSE_ERROR", why.clone()),
            Self::Failed(why) => {
                (-32603, StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", why.clone())
            }
        }
    }

    fn details(reason: &str) -> Value {
        json!([{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org" }])
    }

    /// Shows it as an answer of JSON-RPC.
    pub(super) fn rpc(&self, id: &Value) -> Value {
        let (code, _, reason, message) = self.parts();
        let error = json!({ "code": code, "message": message, "data": Self::details(reason) });
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.parts().3)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (_, status, reason, message) = self.parts();
        let name = match status {
            StatusCode::NOT_FOUND => "NOT_FOUND",
            StatusCode::CONFLICT => "FAILED_PRECONDITION",
            StatusCode::INTERNAL_SERVER_ERROR => "INTERNAL",
            _ => "INVALID_ARGUMENT",
        };
        let error = json!({ "code": status.as_u16(), "status": name, "message": message, "details": Self::details(reason) });
        (status, Json(json!({ "error": error }))).into_response()
    }
}

impl From<Plain> for Refusal {
    fn from(Plain(status, why): Plain) -> Self {
        match status.is_server_error() {
            true => Self::Failed(why),
            false => Self::Invalid(why),
        }
    }
}

impl From<crate::service::Error> for Refusal {
    fn from(error: crate::service::Error) -> Self {
        Plain::from(error).into()
    }
}

impl From<crate::service::kept::Error> for Refusal {
    fn from(error: crate::service::kept::Error) -> Self {
        Plain::from(error).into()
    }
}
