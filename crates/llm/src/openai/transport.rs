//! The HTTP layer under async-openai: keeps what its own layer would lose of a refusal, and reads streams.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_openai::config::Config;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use futures::StreamExt as _;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use super::retry;
use crate::{ChatRequest, Error};
use perihelion_settings::config::{Api, ModelSettings};

/// Bytes of a refusal's body that are read; the rest cannot help anyone.
const REFUSAL_BYTES: usize = 64 * 1024;

pub(super) const BOM: char = '\u{feff}';

/// What a request for a stream accepts.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// Bytes of a whole answer; more is refused.
pub(super) const WHOLE_BYTES: usize = 16 * 1024 * 1024;

/// Builds an HTTP client; a `direct` one ignores the proxy of the environment.
pub(super) fn client(connect_timeout: Duration, direct: bool) -> Result<reqwest::Client, Error> {
    let builder = reqwest::Client::builder();
    let builder = if direct { builder.no_proxy() } else { builder };
    builder
        .connect_timeout(connect_timeout)
        // A redirect would carry prompts to a host that nobody configured.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("perihelion/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| Error::Unreachable {
            endpoint: "(any)".to_owned(),
            reason: format!("no HTTP client could be made: {error}"),
        })
}

/// Returns whether an address is on this machine, where no proxy can reach it.
pub(super) fn is_loopback(url: &str) -> bool {
    let host = reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.is_some_and(|host| {
        let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
    })
}

/// An answer that async-openai is not given to read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Diverted {
    /// The endpoint refused.
    #[error("status {status}")]
    Refused { status: u16, retry_after: Option<Duration>, body: String },
    /// The answer to a request for a stream: async-openai's reader panics at a byte order mark, and hides how it ended.
    #[error("a stream")]
    Stream(reqwest::Response),
}

/// Returns the answer to a request for a stream, which the client hands out as an error.
///
/// # Errors
/// Any other error as it is.
pub(super) fn stream_of(error: OpenAIError) -> Result<reqwest::Response, OpenAIError> {
    let OpenAIError::Boxed(boxed) = error else { return Err(error) };
    match boxed.downcast().map(|diverted| *diverted) {
        Ok(Diverted::Stream(response)) => Ok(response),
        Ok(refused) => Err(OpenAIError::Boxed(Box::new(refused))),
        Err(other) => Err(OpenAIError::Boxed(other)),
    }
}

/// Says where the key comes from, and whether there is one.
pub(super) fn about_the_key(settings: &ModelSettings) -> String {
    match (&settings.api_key_env, &settings.api_key) {
        (Some(variable), Some(_)) => format!("the key is read from {variable}, which is set"),
        (Some(variable), None) => format!("the key is read from {variable}, which is not set"),
        (None, _) => {
            "no key goes to this address: name its variable in api_key_env of the role".to_owned()
        }
    }
}

/// Sends one request once: no retries, no error parsing.
#[derive(Clone)]
pub(super) struct Transport(pub reqwest::Client);

impl tower_service::Service<HttpRequestFactory> for Transport {
    type Response = reqwest::Response;
    type Error = OpenAIError;
    type Future = Pin<Box<dyn Future<Output = Result<reqwest::Response, OpenAIError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), OpenAIError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, factory: HttpRequestFactory) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move {
            let request = factory.build().await?;
            let streamed = request.headers().get(ACCEPT).is_some_and(|kind| kind == EVENT_STREAM);
            let response = client.execute(request).await?;
            let diverted = if !response.status().is_success() {
                let status = response.status().as_u16();
                let retry_after = retry::retry_after(response.headers());
                let body = read_up_to(response, REFUSAL_BYTES).await?;
                Diverted::Refused { status, retry_after, body }
            } else if streamed {
                Diverted::Stream(response)
            } else {
                return Ok(bounded(response));
            };
            Err(OpenAIError::Boxed(Box::new(diverted)))
        })
    }
}

/// Passes an answer on that ends with an error where it is longer than any answer should be.
fn bounded(response: reqwest::Response) -> reqwest::Response {
    let status = response.status();
    let headers = response.headers().clone();
    let mut room = WHOLE_BYTES;
    let body = response.bytes_stream().map(move |piece| {
        let piece = piece.map_err(std::io::Error::other)?;
        room = room.checked_sub(piece.len()).ok_or_else(|| {
            std::io::Error::other(format!("the answer is longer than {WHOLE_BYTES} bytes"))
        })?;
        Ok::<_, std::io::Error>(piece)
    });
    let mut whole = http::Response::new(reqwest::Body::wrap_stream(body));
    (*whole.status_mut(), *whole.headers_mut()) = (status, headers);
    whole.into()
}

pub(super) async fn read_up_to(
    mut response: reqwest::Response,
    limit: usize,
) -> Result<String, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = limit - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == limit {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// Why no more of a body could be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the connection broke: {}", cause(.0))]
    Broken(#[source] reqwest::Error),
    #[error("the answer is longer than {WHOLE_BYTES} bytes")]
    TooLong,
}

impl From<reqwest::Error> for BodyError {
    fn from(error: reqwest::Error) -> Self {
        Self::Broken(error.without_url())
    }
}

/// Reads a whole answer, without its byte order mark.
pub(super) async fn read_whole(response: reqwest::Response) -> Result<String, BodyError> {
    let text = read_up_to(response, WHOLE_BYTES + 1).await?;
    if text.len() > WHOLE_BYTES {
        return Err(BodyError::TooLong);
    }
    Ok(text.trim_start_matches(BOM).to_owned())
}

/// The server-sent events of an answer: their data alone, whatever their names.
///
/// Read leniently: a byte order mark, unknown fields and bytes that are not UTF-8 do not end a stream, and an event at
/// its end needs no empty line.
pub(super) struct Events {
    body: reqwest::Response,
    /// Bytes that are not read yet; a part of a line at its end.
    pending: Vec<u8>,
    data: Option<String>,
    bytes: usize,
    /// The whole body has arrived.
    is_over: bool,
}

impl Events {
    pub(super) fn new(body: reqwest::Response) -> Self {
        Self { body, pending: Vec::new(), data: None, bytes: 0, is_over: false }
    }

    /// Tells whether the last event came without the empty line that ends one.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the data of the next event; none after the last one.
    pub(super) async fn next(&mut self) -> Result<Option<String>, BodyError> {
        loop {
            while let Some(end) = self.line_end() {
                let line: Vec<u8> = self.pending.drain(..end).collect();
                if self.read_line(&line) {
                    return Ok(self.data.take());
                }
            }
            if self.is_over {
                let line = std::mem::take(&mut self.pending);
                self.read_line(&line);
                return Ok(self.data.take());
            }
            match self.body.chunk().await? {
                Some(chunk) => {
                    self.bytes += chunk.len();
                    if self.bytes > WHOLE_BYTES {
                        return Err(BodyError::TooLong);
                    }
                    self.pending.extend_from_slice(&chunk);
                }
                None => self.is_over = true,
            }
        }
    }

    /// Returns how long the next line is with its end: CR, LF or both.
    fn line_end(&self) -> Option<usize> {
        let at = self.pending.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
        match (self.pending[at], self.pending.get(at + 1)) {
            (b'\r', Some(b'\n')) => Some(at + 2),
            (b'\r', None) if !self.is_over => None,
            _ => Some(at + 1),
        }
    }

    /// Reads a line; returns whether it ends an event that has data.
    fn read_line(&mut self, line: &[u8]) -> bool {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches(['\n', '\r']).trim_start_matches(BOM);
        if line.is_empty() {
            return self.data.is_some();
        }
        if let Some(data) = line.strip_prefix("data:") {
            let data = data.strip_prefix(' ').unwrap_or(data);
            let known = self.data.get_or_insert_default();
            if !known.is_empty() {
                known.push('\n');
            }
            known.push_str(data);
        }
        false
    }
}

/// Returns the innermost cause of an error, which holds the useful part ("connection refused").
pub(super) fn cause(error: &dyn std::error::Error) -> String {
    let mut last = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let wording = cause.to_string();
        // The system's number for it says nothing more.
        let words = wording.split(" (os error ").next().unwrap_or_default();
        if !words.is_empty() {
            last = words.to_owned();
        }
        source = cause.source();
    }
    last
}

/// Address and key of one lane, in async-openai's terms.
#[derive(Clone)]
pub(super) struct Credentials {
    base: String,
    query: Vec<(String, String)>,
    key: SecretString,
    api: Api,
    /// The path of a chat where it is another than that of Chat Completions.
    chat: Option<String>,
}

impl Credentials {
    /// Splits a query off the address, so that gateways that want one (`?api-version=…`) get it.
    pub(super) fn new(url: &str, key: Option<SecretString>) -> Self {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let query = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let key = key.unwrap_or_else(|| SecretString::from(String::new()));
        let base = base.trim_end_matches('/').to_owned();
        Self { base, query, key, api: Api::ChatCompletions, chat: None }
    }

    /// Speaks another API, to a model and for whole or streamed answers.
    pub(super) fn speaking(mut self, api: Api, model: &str, streamed: bool) -> Self {
        self.api = api;
        let generate = if streamed { "streamGenerateContent" } else { "generateContent" };
        self.chat = match api {
            Api::ChatCompletions => None,
            Api::Anthropic => Some("/messages".to_owned()),
            Api::Gemini => Some(format!("/models/{model}:{generate}")),
        };
        if api == Api::Gemini && streamed {
            self.query.push(("alt".to_owned(), "sse".to_owned()));
        }
        self
    }
}

impl Config for Credentials {
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let key = self.key.expose_secret();
        let (name, value) = match self.api {
            Api::ChatCompletions => (AUTHORIZATION, format!("Bearer {key}")),
            Api::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
            Api::Gemini => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
        };
        if !key.is_empty()
            && let Ok(mut value) = HeaderValue::from_str(&value)
        {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        if self.api == Api::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        headers
    }

    fn url(&self, path: &str) -> String {
        match &self.chat {
            Some(chat) if path == "/chat/completions" => format!("{}{chat}", self.base),
            _ => format!("{}{path}", self.base),
        }
    }

    fn query(&self) -> Vec<(&str, &str)> {
        self.query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    fn api_base(&self) -> &str {
        &self.base
    }

    fn api_key(&self) -> &SecretString {
        &self.key
    }
}

/// Writes the headers by which gateways attribute cost.
pub(super) fn headers(request: &ChatRequest) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let values = [
        ("x-perihelion-role", Some(request.role.as_str())),
        ("x-perihelion-thread", Some(request.thread.as_str())),
        ("x-perihelion-agent", request.agent.as_deref()),
        ("x-perihelion-stage", request.stage.as_deref()),
    ];
    for (name, value) in values {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&printable(value)).ok()) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers
}

/// Percent-encodes what a header cannot carry everywhere.
fn printable(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            0x20..=0x7e => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// Tells whether a body is JSON, whatever the letters and parameters of its type.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type
        .is_some_and(|kind| kind.trim_start().to_lowercase().starts_with("application/json"))
}
