//! Sends one message over HTTP and reads the response, more leniently than the library does.
//!
//! A content type counts in upper and lower case, an event under any name, and an answer is repaired as over stdio. A
//! server that asks for time (429 with `Retry-After`) gets it: it has not taken the message yet.

use std::convert::Infallible;
use std::io::Cursor;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt as _};
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, ServerJsonRpcMessage,
};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use super::{delivery::Failure, messages};
use crate::types::text;
use perihelion_clock as clock;
use perihelion_http::reach;

/// Bytes of a whole answer, where no other limit is given.
pub(super) const BODY_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of a refusal that are read.
const REFUSAL_BYTES: usize = 64 * 1024;
/// Characters of a refusal that are shown.
const SHOWN_CHARS: usize = 300;
/// The longest wait that a server can request, and how often.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
const WAITS: u32 = 3;

type Events = BoxStream<'static, Result<Sse, SseError>>;

pub(super) struct Post<'a> {
    pub request: reqwest::RequestBuilder,
    pub message: &'a ClientJsonRpcMessage,
    pub has_session: bool,
    pub max_event_bytes: usize,
}

impl Post<'_> {
    pub async fn send(&self) -> Result<StreamableHttpPostResponse, Failure> {
        let accepted = format!("{JSON_MIME_TYPE}, {EVENT_STREAM_MIME_TYPE}");
        let mut waits = 0;
        let response = loop {
            let Some(request) = self.request.try_clone() else {
                return Err(Failure::UnexpectedServerResponse("the message cannot be sent".into()));
            };
            let response = request.header(ACCEPT, &accepted).json(self.message).send().await?;
            // The server accepts no more messages for now.
            let is_full = response.status() == StatusCode::TOO_MANY_REQUESTS;
            let wait = is_full.then(|| reach::retry_after(response.headers())).flatten();
            match wait.filter(|wait| *wait <= LONGEST_WAIT && waits < WAITS) {
                Some(wait) => {
                    tracing::debug!(?wait, "an MCP server asks to wait");
                    clock::sleep(wait).await;
                    waits += 1;
                }
                None => break response,
            }
        };
        let status = response.status();
        let session = header(&response, HEADER_SESSION_ID);
        let kind = header(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
        let is = |mime: &str| kind.trim_start().to_ascii_lowercase().starts_with(mime);
        let wants_answer = matches!(self.message, JsonRpcMessage::Request(_));
        let is_accepted = matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT);
        if is_accepted && !wants_answer {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !status.is_success() {
            return self.refused(response, is(JSON_MIME_TYPE)).await;
        }
        if is(EVENT_STREAM_MIME_TYPE) {
            let events = bounded_events(response, self.max_event_bytes);
            return Ok(StreamableHttpPostResponse::Sse(repaired_events(events), session));
        }
        let body = match read_up_to(response, self.max_event_bytes).await {
            Ok(body) => body,
            Err(_) if !wants_answer => return Ok(StreamableHttpPostResponse::Accepted),
            Err(failure) => return Err(failure),
        };
        if is_events(&body) {
            let whole = Cursor::new([body.as_slice(), b"\n\n"].concat());
            let events = SseStream::from_bytes_stream(stream::iter([Ok::<_, Infallible>(whole)]));
            let events = repaired_events(events.boxed());
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let texts = texts(&body);
        // Some servers answer a notification with an empty body, and some name no type.
        let mut read = texts.iter().filter_map(|text| serde_json::from_str(text).ok());
        match (read.next(), texts.len()) {
            (Some(message), 1) => Ok(StreamableHttpPostResponse::Json(message, session)),
            (Some(_), _) => {
                let events = texts.into_iter().map(|text| Ok(Sse::default().data(text)));
                Ok(StreamableHttpPostResponse::Sse(stream::iter(events).boxed(), session))
            }
            // The answer comes over the server's own stream.
            (None, _) if !wants_answer || is_accepted => Ok(StreamableHttpPostResponse::Accepted),
            (None, _) if is(JSON_MIME_TYPE) => {
                let words = shown(&body);
                let reason = format!("the answer is not a message of the protocol: {words}");
                Err(Failure::UnexpectedServerResponse(reason.into()))
            }
            (None, _) => Err(Failure::UnexpectedContentType(Some(kind))),
        }
    }

    /// Reads a status that is no success.
    async fn refused(
        &self,
        response: reqwest::Response,
        is_json: bool,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let status = response.status();
        let challenge = header(&response, WWW_AUTHENTICATE.as_str());
        match (status, challenge) {
            (StatusCode::UNAUTHORIZED, Some(challenge)) => {
                return Err(Failure::AuthRequired(AuthRequiredError::new(challenge)));
            }
            (StatusCode::FORBIDDEN, Some(challenge)) => {
                let scope = scope(&challenge);
                return Err(Failure::InsufficientScope(InsufficientScopeError::new(
                    challenge, scope,
                )));
            }
            (StatusCode::NOT_FOUND, _) if self.has_session => return Err(Failure::SessionExpired),
            _ => {}
        }
        let metadata =
            (status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()).then(|| {
                HttpStatusError::new(status.as_u16(), header(&response, RETRY_AFTER.as_str()))
            });
        let has_words = is_json && status != StatusCode::TOO_MANY_REQUESTS;
        if let Some(metadata) = metadata.filter(|_| !has_words) {
            return Err(metadata.into());
        }
        let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let body = read_up_to(response, REFUSAL_BYTES).await.unwrap_or_default();
        if self.has_session && status.is_client_error() && names_a_session(&body) {
            return Err(Failure::SessionExpired);
        }
        if let JsonRpcMessage::Request(request) = self.message
            && !is_refused
        {
            let is_probe = matches!(request.request, ClientRequest::DiscoverRequest(_));
            let plain = || {
                let words = format!("HTTP {status}: {}", shown(&body));
                (is_probe && status.is_client_error())
                    .then(|| ErrorData::invalid_request(words, None))
            };
            if let Some(error) = error_in(&body).or_else(plain) {
                // Servers that did not come to read the id name another one.
                let message = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
                return Ok(StreamableHttpPostResponse::Json(message, None));
            }
        }
        if status.is_server_error() {
            return Err(HttpStatusError::new(status.as_u16(), None).into());
        }
        // `delivery::status` reads it.
        let reason = format!("HTTP {status}: {}", shown(&body));
        Err(Failure::UnexpectedServerResponse(reason.into()))
    }
}

fn header(response: &reqwest::Response, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

fn scope(challenge: &str) -> Option<String> {
    let rest = challenge.split_once("scope=")?.1;
    let scope = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split([',', ' ']).next(),
    };
    scope.filter(|scope| !scope.is_empty()).map(str::to_owned)
}

async fn read_up_to(mut response: reqwest::Response, most: usize) -> Result<Vec<u8>, Failure> {
    let (body, is_cut) = reach::bounded(&mut response, most).await?;
    if is_cut { Err(Failure::ResponseBodyTooLarge { max_size: most }) } else { Ok(body) }
}

/// Returns whether a body is a stream of events, whatever its type is.
fn is_events(body: &[u8]) -> bool {
    let fields: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
    fields.iter().any(|field| body.trim_ascii_start().starts_with(field))
}

fn texts(body: &[u8]) -> Vec<String> {
    messages::repaired(body).unwrap_or_else(|| vec![String::from_utf8_lossy(body).into_owned()])
}

/// Returns whether a server refuses a message for its session, which it had before a restart.
///
/// The protocol has 404 for it; many servers answer 400 or 401 with words of their own.
fn names_a_session(body: &[u8]) -> bool {
    // Arguments of a tool can be sessions of another kind.
    if error_in(body).is_some_and(|error| error.code == ErrorCode::INVALID_PARAMS) {
        return false;
    }
    let words = String::from_utf8_lossy(body).to_lowercase();
    ["session", "not initialized"].iter().any(|sign| words.contains(sign))
}

fn error_in(body: &[u8]) -> Option<ErrorData> {
    let texts = texts(body);
    let [text] = texts.as_slice() else { return None };
    match serde_json::from_str(text) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error.error),
        _ => None,
    }
}

fn shown(body: &[u8]) -> String {
    text::cut(&text::one_line(&String::from_utf8_lossy(body)), SHOWN_CHARS)
}

fn bounded_events(response: reqwest::Response, most: usize) -> Events {
    let mut length = 0;
    let mut last = 0;
    let bytes = response.bytes_stream().map(move |piece| {
        let piece = piece.map_err(std::io::Error::other)?;
        for byte in piece.iter().filter(|byte| **byte != b'\r') {
            // An empty line ends an event.
            length = if (*byte, last) == (b'\n', b'\n') { 0 } else { length + 1 };
            last = *byte;
            if length > most {
                let reason = format!("an event is longer than {most} bytes");
                return Err(std::io::Error::other(reason));
            }
        }
        Ok(piece)
    });
    SseStream::from_bytes_stream(bytes).boxed()
}

/// Repairs the messages in events; an event with the server's own name counts if it contains one.
pub(super) fn repaired_events(events: Events) -> Events {
    let repaired = |event: Result<Sse, SseError>| {
        let Ok(event) = event else { return vec![event] };
        let is_usual = matches!(event.event.as_deref(), None | Some("" | "message"));
        let Some(data) = &event.data else { return vec![Ok(Sse { event: None, ..event })] };
        if !is_usual && !messages::is_message(data.as_bytes()) {
            return vec![Ok(Sse { event: None, data: None, ..event })];
        }
        let texts = texts(data.as_bytes()).into_iter();
        texts.map(|text| Ok(Sse { event: None, data: Some(text), ..event.clone() })).collect()
    };
    events.flat_map(move |event| stream::iter(repaired(event))).boxed()
}
