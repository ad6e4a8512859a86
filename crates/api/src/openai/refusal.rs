//! Refusals in the form that OpenAI's clients expect, on every path below `/v1`.

use axum::Json;
use axum::body::{self, Body};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::http::Refusal as Plain;

/// Seconds after which a client may retry if the service cannot answer now.
const AGAIN_SEC: u32 = 1;

/// Bytes of a refusal that are read at most.
const LONGEST: usize = 1 << 16;

#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    message: String,
    param: Option<String>,
    /// The reason in one word; by default the one of the status.
    code: Option<&'static str>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None, code: None }
    }

    pub(super) fn invalid(why: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, why)
    }

    pub(super) fn missing(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, what)
    }

    pub(super) fn about(self, param: impl Into<String>, code: &'static str) -> Self {
        Self { param: Some(param.into()), code: Some(code), ..self }
    }

    /// Returns the body, which streams end with, too.
    pub(super) fn shown(&self) -> Value {
        let code = self.code.or_else(|| code(self.status));
        let kind = kind(self.status);
        json!({ "error": { "message": self.message, "type": kind, "param": self.param, "code": code } })
    }
}

fn kind(status: StatusCode) -> &'static str {
    match status {
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    }
}

fn code(status: StatusCode) -> Option<&'static str> {
    Some(match status {
        StatusCode::UNAUTHORIZED => "invalid_api_key",
        StatusCode::FORBIDDEN => "insufficient_permissions",
        StatusCode::NOT_FOUND => "not_found",
        StatusCode::METHOD_NOT_ALLOWED => "method_not_supported",
        StatusCode::CONFLICT => "conflict",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "unsupported_media_type",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_exceeded",
        StatusCode::SERVICE_UNAVAILABLE => "service_unavailable",
        status if status.is_server_error() => "server_error",
        _ => return None,
    })
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.shown())).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, AGAIN_SEC.into());
        }
        response
    }
}

impl<E: Into<Plain>> From<E> for Refusal {
    fn from(error: E) -> Self {
        let Plain(status, why) = error.into();
        match status {
            StatusCode::UNPROCESSABLE_ENTITY => Self::invalid(why),
            status => Self::new(status, why),
        }
    }
}

/// Adds the object `error` to a refusal without one: from the gate, from our own routes, from unknown paths.
pub(crate) async fn with_error(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    let response = next.run(request).await;
    let status = response.status();
    let is_refused = status.is_client_error() || status.is_server_error();
    if !is_refused {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let read = body::to_bytes(body, LONGEST).await.unwrap_or_default();
    let mut shown: Map<String, Value> = serde_json::from_slice(&read).unwrap_or_default();
    if !shown.contains_key("error") {
        let why = match (shown.get("detail"), status) {
            (Some(Value::String(why)), StatusCode::NOT_FOUND) if why == "Not Found" => {
                format!("Unknown request URL: {method} {path}; check it for typos")
            }
            (Some(Value::String(why)), _) => why.clone(),
            (None, _) if read.is_empty() => status.canonical_reason().unwrap_or("Refused").into(),
            _ => String::from_utf8_lossy(&read).trim().to_owned(),
        };
        let mut refusal = Refusal::new(status, why);
        if refusal.message.starts_with("Unknown request URL") {
            refusal.code = Some("unknown_url");
        }
        shown.extend(refusal.shown().as_object().cloned().unwrap_or_default());
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, Body::from(Value::Object(shown).to_string()))
}
