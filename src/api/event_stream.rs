//! How streams of server-sent events are answered.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures::{Stream, StreamExt as _};
use perihelion_http::sse;

use crate::clock;

/// How often a silent stream says that it lives.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(5);

/// Answers with a stream that no cache keeps and no proxy holds back, and that says that it lives while it is silent; `headers`
/// stand beside its own.
pub(super) fn response(
    mut headers: HeaderMap,
    events: impl Stream<Item = Result<Bytes, std::convert::Infallible>> + Send + 'static,
) -> Response {
    headers
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    let mut response = Response::new(Body::from_stream(beating(events, HEARTBEAT)));
    *response.headers_mut() = headers;
    response
}

/// Puts a comment wherever nothing was sent for a while.
fn beating<E>(
    events: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    every: Duration,
) -> impl Stream<Item = Result<Bytes, E>> + Send + 'static {
    futures::stream::unfold(Box::pin(events), move |mut events| async move {
        let next = tokio::select! {
            biased;
            event = events.next() => event?,
            () = clock::sleep(every) => Ok(sse::HEARTBEAT),
        };
        Some((next, events))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X8: on every face, as each answers with this.
    #[tokio::test]
    async fn a_silent_stream_sends_a_comment_and_loses_nothing() {
        let (say, heard) =
            futures::channel::mpsc::unbounded::<Result<Bytes, std::convert::Infallible>>();
        let mut stream = Box::pin(beating(heard, Duration::from_millis(1)));
        for event in ["first", "second"] {
            assert_eq!(stream.next().await, Some(Ok(sse::HEARTBEAT)));
            say.unbounded_send(Ok(event.into())).unwrap();
            let mut next = stream.next().await;
            while next == Some(Ok(sse::HEARTBEAT)) {
                next = stream.next().await;
            }
            assert_eq!(next, Some(Ok(event.into())));
        }
        drop(say);
        assert_eq!(stream.next().await, None);
    }
}
