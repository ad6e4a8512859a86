//! How streams of server-sent events are answered.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures::Stream;

/// How often a silent stream says that it lives.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(5);

/// Answers with a stream that no cache keeps and no proxy holds back; `headers` stand beside its own.
pub(super) fn response(
    mut headers: HeaderMap,
    events: impl Stream<Item = Result<Bytes, std::convert::Infallible>> + Send + 'static,
) -> Response {
    headers
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    let mut response = Response::new(Body::from_stream(events));
    *response.headers_mut() = headers;
    response
}
