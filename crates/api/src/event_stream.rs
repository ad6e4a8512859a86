//! Answers that take a long time: streams of server-sent events, each in its wire form, and values that are known later.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures::{Stream, StreamExt as _, stream};
use serde_json::Value;

use super::conversation::{AnswerPart, Conversation};
use perihelion_engine::clock;
use perihelion_service::Service;

pub(super) const HEARTBEAT: Duration = Duration::from_secs(5);

const BEAT: Bytes = Bytes::from_static(b": heartbeat\n\n");

/// Writes one event; `data` is JSON on one line.
///
/// Characters that would break the framing, line ends in a name or an ID, are removed.
pub(super) fn event(name: &str, data: &str, id: Option<&str>) -> Bytes {
    let mut text = String::with_capacity(name.len() + data.len() + 48);
    field(&mut text, "event", name);
    for line in data.split('\n') {
        field(&mut text, "data", line);
    }
    if let Some(id) = id {
        field(&mut text, "id", id);
    }
    text.push('\n');
    Bytes::from(text)
}

/// Writes one event without a name, as some protocols want it.
pub(super) fn data(data: &str) -> Bytes {
    Bytes::from(format!("data: {}\n\n", data.replace(['\r', '\n'], " ")))
}

fn field(text: &mut String, name: &str, value: &str) {
    text.push_str(name);
    text.push_str(": ");
    text.extend(value.chars().filter(|letter| !matches!(letter, '\r' | '\n' | '\0')));
    text.push('\n');
}

/// Answers with a stream of events, with comments while it is silent; `headers` are added to its own.
pub(super) fn response(
    headers: HeaderMap,
    events: impl Stream<Item = Bytes> + Send + 'static,
) -> Response {
    let events = events.map(Ok::<_, std::convert::Infallible>);
    living(headers, "text/event-stream; charset=utf-8", BEAT, events)
}

/// Something that a client follows.
pub(super) trait Followed: Send + 'static {
    type Error: std::fmt::Display;

    /// Waits for the next events, perhaps none; `None` after the last.
    ///
    /// It can be dropped at any time without losing events.
    fn advance(&mut self) -> impl Future<Output = Result<Option<Vec<Bytes>>, Self::Error>> + Send;
}

/// Streams events until the last one or a failure, or until this process ends. The client can then reconnect.
pub(super) fn following<F: Followed>(
    service: &Service,
    followed: F,
) -> impl Stream<Item = Bytes> + Send + 'static + use<F> {
    let stop = service.stop().clone();
    // An `async` closure would have room for its arguments twice, in each of thousands of idle streams.
    let parts = stream::unfold((followed, stop), |(mut followed, stop)| async move {
        match stop.run_until_cancelled(followed.advance()).await? {
            Ok(events) => Some((stream::iter(events?), (followed, stop))),
            Err(error) => {
                tracing::warn!(%error, "a stream ended early; the client can continue after its last event");
                None
            }
        }
    });
    parts.flatten()
}

/// Streams a run: `events` turns each part of it into events, which follow the `first`.
pub(super) fn of_conversation(
    conversation: Conversation,
    first: Vec<Bytes>,
    events: impl FnMut(AnswerPart) -> Vec<Bytes> + Send + 'static,
) -> Response {
    let rest =
        stream::unfold((conversation, events), |(mut conversation, mut events)| async move {
            let part = conversation.next().await?;
            Some((stream::iter(events(part)), (conversation, events)))
        });
    response(HeaderMap::new(), stream::iter(first).chain(rest.flatten()))
}

/// Answers at once, and with JSON as soon as there is some, with empty lines before it until then.
///
/// A body whose value fails is broken off, so that it does not look complete.
pub(super) fn json_later<E: Into<axum::BoxError> + 'static>(
    headers: HeaderMap,
    value: impl Future<Output = Result<Value, E>> + Send + 'static,
) -> Response {
    let body = stream::once(async { value.await.map(|value| Bytes::from(value.to_string())) });
    living(headers, "application/json", Bytes::from_static(b"\n"), body)
}

/// Answers with a body that no cache keeps and no proxy holds back, and that says by `beat` that it lives while it is
/// silent.
fn living<E: Into<axum::BoxError> + 'static>(
    mut headers: HeaderMap,
    kind: &'static str,
    beat: Bytes,
    body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
) -> Response {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    let mut response = Response::new(Body::from_stream(beating(body, beat, HEARTBEAT)));
    *response.headers_mut() = headers;
    response
}

/// Adds a heartbeat after a silence.
fn beating<E: 'static>(
    body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    beat: Bytes,
    every: Duration,
) -> impl Stream<Item = Result<Bytes, E>> + Send + 'static {
    stream::unfold((Box::pin(body), beat), move |(mut body, beat)| async move {
        let next = tokio::select! {
            biased;
            part = body.next() => part?,
            () = clock::sleep(every) => Ok(beat.clone()),
        };
        Some((next, (body, beat)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_exactly_a_name_data_and_an_id() {
        let text = event("updates|a\nb", "{\"x\":1}", Some("4-0"));
        assert_eq!(&text[..], b"event: updates|ab\ndata: {\"x\":1}\nid: 4-0\n\n");
    }

    /// X8: in every API, because each answers with this.
    #[tokio::test]
    async fn a_silent_stream_sends_a_comment_and_loses_no_event() {
        let (say, heard) =
            futures::channel::mpsc::unbounded::<Result<Bytes, std::convert::Infallible>>();
        let mut stream = Box::pin(beating(heard, BEAT, Duration::from_millis(1)));
        for event in ["first", "second"] {
            assert_eq!(stream.next().await, Some(Ok(BEAT)));
            say.unbounded_send(Ok(event.into())).unwrap();
            let mut next = stream.next().await;
            while next == Some(Ok(BEAT)) {
                next = stream.next().await;
            }
            assert_eq!(next, Some(Ok(event.into())));
        }
        drop(say);
        assert_eq!(stream.next().await, None);
    }
}
