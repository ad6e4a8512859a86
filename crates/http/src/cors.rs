//! The headers for pages of other origins.

use axum::http::{HeaderMap, HeaderValue, header};

const METHODS: &str = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT";

/// How long a browser may remember the answer to its question.
const MAX_AGE: &str = "600";

/// Permits a page to read a response and its exposed headers.
pub(crate) fn mark(headers: &mut HeaderMap, origin: &HeaderValue, exposed: &'static str) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(exposed));
}

/// Answers a browser's question whether it may send a request.
pub(crate) fn preflight(asked: &HeaderMap, headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    if let Some(wanted) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    if asked.contains_key("access-control-request-private-network") {
        let name = header::HeaderName::from_static("access-control-allow-private-network");
        headers.insert(name, HeaderValue::from_static("true"));
    }
}
