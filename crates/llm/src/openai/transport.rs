//! Sends requests to one endpoint, and reads the responses: whole bodies, refusals, streams.

use std::time::Duration;

use perihelion_http::reach::{self, Credentials, WHOLE_BYTES};
use reqwest::Response;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::ChatRequest;
use perihelion_settings::config::{Api, ModelSettings};

/// Bytes of a refusal's body that are read; the rest cannot help anyone.
const REFUSAL_BYTES: usize = 64 * 1024;

pub(super) const BOM: char = '\u{feff}';

/// Why a request brought no answer.
pub(super) enum SendError {
    Refused { status: u16, retry_after: Option<Duration>, body: String },
    Lost(reqwest::Error),
}

impl From<reqwest::Error> for SendError {
    fn from(error: reqwest::Error) -> Self {
        Self::Lost(error)
    }
}

pub(super) struct Transport {
    http: reqwest::Client,
    credentials: Credentials,
    /// The paths of a chat, for a whole answer and for a streamed one.
    whole: String,
    streamed: String,
}

impl Transport {
    pub(super) fn new(http: reqwest::Client, url: &str, settings: &ModelSettings) -> Self {
        let credentials = Credentials::new(url, settings.api_key.clone()).speaking(settings.api);
        let model = &settings.model;
        let whole = match settings.api {
            Api::ChatCompletions => "/chat/completions".to_owned(),
            Api::Anthropic => "/messages".to_owned(),
            Api::Gemini => format!("/models/{model}:generateContent"),
        };
        let streamed = match settings.api {
            Api::Gemini => format!("/models/{model}:streamGenerateContent?alt=sse"),
            Api::ChatCompletions | Api::Anthropic => whole.clone(),
        };
        Self { http, credentials, whole, streamed }
    }

    /// Sends a request once: no retries.
    pub(super) async fn chat(
        &self,
        request: &ChatRequest,
        body: &Value,
        is_streamed: bool,
    ) -> Result<Response, SendError> {
        let path = if is_streamed { &self.streamed } else { &self.whole };
        let mut sent = self.credentials.post(&self.http, path).headers(headers(request)).json(body);
        if is_streamed {
            sent = sent.header(ACCEPT, "text/event-stream");
        }
        let response = sent.send().await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let retry_after = reach::retry_after(response.headers());
        let body = reach::read_up_to(response, REFUSAL_BYTES).await?;
        Err(SendError::Refused { status, retry_after, body })
    }

    /// Reads JSON from another address of a local server, without a key; none if there is none.
    pub(super) async fn local(&self, url: &str) -> Option<Value> {
        let answer = self.http.get(url).timeout(Duration::from_secs(2)).send().await.ok()?;
        let body = reach::read_up_to(answer.error_for_status().ok()?, WHOLE_BYTES).await.ok()?;
        serde_json::from_str(&body).ok()
    }

    /// Asks which models there are; returns status and body.
    pub(super) async fn models(&self) -> Result<(u16, String), SendError> {
        let response = self.credentials.get(&self.http, "/models").send().await?;
        let status = response.status().as_u16();
        Ok((status, reach::read_up_to(response, WHOLE_BYTES).await?))
    }
}

/// Names the source of the key, and whether there is one.
pub(super) fn about_the_key(settings: &ModelSettings) -> String {
    match (&settings.api_key_env, &settings.api_key) {
        (Some(variable), Some(_)) => format!("the key is read from {variable}, which is set"),
        (Some(variable), None) => format!("the key is read from {variable}, which is not set"),
        (None, _) => {
            "no key goes to this address: name its variable in api_key_env of the role".to_owned()
        }
    }
}

/// Why the rest of a body could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the connection broke: {}", reach::cause(.0))]
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
    let text = reach::read_up_to(response, WHOLE_BYTES + 1).await?;
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

    /// Returns whether the last event arrived without the empty line at its end.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the data of the next event; `None` after the last one.
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
            self.data.take_if(|data| data.trim().is_empty());
            return self.data.is_some();
        }
        // Some endpoints send bare lines of JSON.
        if self.data.is_none() && line.starts_with('{') {
            self.data = Some(line.to_owned());
            return true;
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

fn headers(request: &ChatRequest) -> HeaderMap {
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

/// Percent-encodes characters that headers cannot always contain.
fn printable(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            0x20..=0x7e => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// Returns whether a body is a stream: anything but JSON where one was requested, as some endpoints name no type, and
/// events where none was.
pub(super) fn is_stream(headers: &HeaderMap, is_requested: bool) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = content_type.unwrap_or_default().trim_start().to_lowercase();
    if is_requested {
        !kind.starts_with("application/json")
    } else {
        kind.starts_with("text/event-stream")
    }
}
