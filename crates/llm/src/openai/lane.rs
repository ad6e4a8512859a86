//! One role's way to its endpoint: attempts, waits, and errors that say what to do.

use std::sync::Arc;

use async_openai::Client;
use async_openai::error::OpenAIError;
use async_openai::traits::RequestOptionsBuilder as _;
use futures::StreamExt as _;
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;
use serde_json::Value;

use super::dialect::Dialect;
use super::stream::StreamedAnswer;
use super::transport::{Credentials, Diverted, Transport};
use super::{retry, wire};
use crate::native::{self, Reader};
use crate::{ChatRequest, ChatResponse, Error, TokenSink, fit};
use perihelion_engine::clock;
use perihelion_settings::config::ModelSettings;
use perihelion_settings::metrics;

/// Reaches one endpoint with one role's settings.
pub(super) struct Lane {
    client: Client<Credentials>,
    /// For streamed answers, which some endpoints give at another address.
    streaming: Client<Credentials>,
    settings: ModelSettings,
    /// The address as errors show it: without query.
    endpoint: String,
    dialect: Arc<Dialect>,
}

/// One attempt that failed.
pub(super) struct Failed {
    pub error: Error,
    /// The next attempt may go better.
    transient: bool,
    retry_after: Option<std::time::Duration>,
}

impl Failed {
    fn for_good(error: Error) -> Self {
        Self { error, transient: false, retry_after: None }
    }

    fn for_now(error: Error) -> Self {
        Self { error, transient: true, retry_after: None }
    }
}

impl Lane {
    pub(super) fn new(
        http: &reqwest::Client,
        url: &str,
        settings: ModelSettings,
        dialect: Arc<Dialect>,
    ) -> Self {
        let client = |streamed| {
            let credentials = Credentials::new(url, settings.api_key.clone());
            let credentials = credentials.speaking(settings.api, &settings.model, streamed);
            Client::build(http.clone(), credentials).with_http_service(Transport(http.clone()))
        };
        let streaming = client(true);
        let client = client(false);
        let endpoint = url.split('?').next().unwrap_or_default().to_owned();
        Self { client, streaming, settings, endpoint, dialect }
    }

    /// Answers a request, with as many attempts as the settings allow.
    ///
    /// A streamed answer is not attempted again once a piece of it was handed out.
    pub(super) async fn chat(
        &self,
        request: &ChatRequest,
        mut sink: Option<TokenSink<'_>>,
    ) -> Result<ChatResponse, Error> {
        let mut delays = retry::delays(
            self.settings.max_retries,
            self.settings.backoff,
            self.settings.backoff_max,
        );
        let mut handed_out = 0;
        let mut retry = 0;
        let mut fitted = self.settings.room().and_then(|room| fit::fit(request, room));
        let mut is_shrunk = false;
        loop {
            let request = fitted.as_ref().unwrap_or(request);
            let forms = self.dialect.forms();
            let chat = wire::body(request, &self.settings, forms, sink.is_some());
            let reader = Reader::new(self.settings.api, &chat);
            let body = native::body(self.settings.api, chat);
            let outcome = match sink.as_mut() {
                Some(sink) => self.stream(request, &body, reader, *sink, &mut handed_out).await,
                None => self.whole(request, &body, &reader).await,
            };
            let failed = match outcome {
                Ok(response) => return Ok(response),
                Err(failed) => failed,
            };
            if let Error::Refused { status, message, .. } = &failed.error
                && handed_out == 0
                && self.dialect.learn(forms, request.format.is_some(), *status, message)
            {
                tracing::info!(endpoint = %self.endpoint, %message, "asking the model in a simpler form");
                metrics::model_retried(request.role.as_str(), "simpler_form");
                continue;
            }
            if let Error::Refused { status, message, .. } = &failed.error
                && handed_out == 0
                && !is_shrunk
                && fit::is_too_long(*status, message)
                && let Some(shorter) = fit::fit(request, fit::count(request) / 2)
                && fit::count(&shorter) < fit::count(request)
            {
                tracing::info!(endpoint = %self.endpoint, %message, "asking the model with a shorter prompt");
                metrics::model_retried(request.role.as_str(), "context_length");
                (fitted, is_shrunk) = (Some(shorter), true);
                continue;
            }
            let wait = if failed.transient && handed_out == 0 { delays.next() } else { None };
            let Some(wait) = wait else { return Err(failed.error) };
            let wait =
                failed.retry_after.map_or(wait, |asked| asked.min(self.settings.backoff_max));
            retry += 1;
            let of = self.settings.max_retries;
            let seconds = wait.as_secs_f64();
            tracing::warn!("{}, retry {retry} of {of} in {seconds:.1} s", failed.error.brief());
            tracing::debug!(error = %failed.error, "asking the model again");
            metrics::model_retried(request.role.as_str(), failed.error.class());
            clock::sleep(wait).await;
        }
    }

    async fn whole(
        &self,
        request: &ChatRequest,
        body: &Value,
        reader: &Reader,
    ) -> Result<ChatResponse, Failed> {
        let chat = self.client.chat().headers(headers(request));
        let call = chat.create_byot::<_, Value>(body);
        match tokio::time::timeout(self.settings.timeout, call).await {
            Ok(Ok(value)) => self.read(&reader.whole(value)),
            Ok(Err(error)) => Err(self.failed(error)),
            Err(_) => Err(Failed::for_now(self.timeout())),
        }
    }

    async fn stream(
        &self,
        request: &ChatRequest,
        body: &Value,
        mut reader: Reader,
        sink: &mut (dyn FnMut(&str) + Send),
        handed_out: &mut usize,
    ) -> Result<ChatResponse, Failed> {
        let mut headers = headers(request);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let chat = self.streaming.chat().headers(headers);
        let open = chat.create_stream_byot::<_, Value>(body);
        let mut chunks = match tokio::time::timeout(self.settings.timeout, open).await {
            Ok(Ok(chunks)) => chunks,
            Ok(Err(error)) => {
                let whole = self.whole_in_place_of_stream(error, &reader)?;
                *handed_out += whole.content.len();
                if !whole.content.is_empty() {
                    sink(&whole.content);
                }
                return Ok(whole);
            }
            Err(_) => return Err(Failed::for_now(self.timeout())),
        };
        let mut streamed = StreamedAnswer::default();
        loop {
            let chunk = match tokio::time::timeout(self.settings.timeout, chunks.next()).await {
                Ok(Some(Ok(chunk))) => reader.chunk(chunk),
                Ok(Some(Err(error))) => return Err(self.failed(error)),
                Ok(None) => break,
                Err(_) => return Err(Failed::for_now(self.timeout())),
            };
            if let Some((message, code)) = wire::error_in(&chunk) {
                return Err(self.refused(code.unwrap_or(500), &message, None));
            }
            let piece = streamed.take(&chunk);
            if !piece.is_empty() {
                *handed_out += piece.len();
                sink(&piece);
            }
        }
        if streamed.calls() > wire::MAX_CALLS {
            return Err(Failed::for_good(self.malformed(&wire::too_many_calls(streamed.calls()))));
        }
        if streamed.is_empty() {
            return Err(Failed::for_now(self.malformed("the stream ended before any answer")));
        }
        Ok(streamed.finish(&self.settings.model))
    }

    /// Reads the answer of an endpoint that ignores `stream`.
    fn whole_in_place_of_stream(
        &self,
        error: OpenAIError,
        reader: &Reader,
    ) -> Result<ChatResponse, Failed> {
        if let OpenAIError::Boxed(boxed) = &error
            && let Some(Diverted::Whole(body)) = boxed.downcast_ref()
        {
            let value: Value = serde_json::from_str(body).map_err(|e| self.not_json(&e, body))?;
            return self.read(&reader.whole(value));
        }
        Err(self.failed(error))
    }

    fn read(&self, value: &Value) -> Result<ChatResponse, Failed> {
        // Some gateways report an upstream's refusal with status 200.
        if value.get("choices").is_none()
            && let Some((message, code)) = wire::error_in(value)
        {
            return Err(self.refused(code.unwrap_or(500), &message, None));
        }
        wire::response(value, &self.settings.model)
            .map_err(|reason| Failed::for_good(self.malformed(&reason)))
    }

    pub(super) fn failed(&self, error: OpenAIError) -> Failed {
        match error {
            OpenAIError::Boxed(boxed) => {
                match boxed.downcast::<Diverted>().map(|diverted| *diverted) {
                    Ok(Diverted::Refused { status, retry_after, body }) => {
                        self.refused(status, &wire::refusal_message(&body), retry_after)
                    }
                    Ok(Diverted::Whole(body)) => Failed::for_good(self.malformed(&body)),
                    Err(other) => Failed::for_good(self.malformed(&other.to_string())),
                }
            }
            OpenAIError::Reqwest(error) => {
                let is_builder = error.is_builder();
                let reason = self.clean(&cause(&error.without_url()));
                // The same request would get as much again.
                let transient = !is_builder && !reason.contains("the answer is longer than");
                let error = Error::Unreachable { endpoint: self.endpoint.clone(), reason };
                Failed { error, transient, retry_after: None }
            }
            OpenAIError::JSONDeserialize(error, body) => self.not_json(&error, &body),
            OpenAIError::StreamError(error) => Failed::for_now(Error::Unreachable {
                endpoint: self.endpoint.clone(),
                reason: self.clean(&format!("the answer was cut off: {error}")),
            }),
            other => Failed::for_good(self.malformed(&other.to_string())),
        }
    }

    pub(super) fn refused(
        &self,
        status: u16,
        message: &str,
        retry_after: Option<std::time::Duration>,
    ) -> Failed {
        let mut message = self.clean(message);
        if matches!(status, 401 | 403) {
            message = format!("{message}; {}", self.about_the_key());
        }
        // A spent quota answers 429 as well, and no wait fixes it.
        let spent = message.contains("insufficient_quota")
            || message.contains("exceeded your current quota");
        let error = Error::Refused { endpoint: self.endpoint.clone(), status, message };
        Failed { error, transient: retry::is_transient(status) && !spent, retry_after }
    }

    /// Says where the key comes from, and whether there is one.
    fn about_the_key(&self) -> String {
        match (&self.settings.api_key_env, &self.settings.api_key) {
            (Some(variable), Some(_)) => format!("the key is read from {variable}, which is set"),
            (Some(variable), None) => format!("the key is read from {variable}, which is not set"),
            (None, _) => {
                "no key goes to this address: name its variable in api_key_env of the role"
                    .to_owned()
            }
        }
    }

    fn not_json(&self, error: &serde_json::Error, body: &str) -> Failed {
        let reason = match body.trim() {
            "" => "it is empty".to_owned(),
            body => format!("it is not JSON ({error}): {body}"),
        };
        Failed::for_good(self.malformed(&reason))
    }

    fn malformed(&self, reason: &str) -> Error {
        Error::Malformed { endpoint: self.endpoint.clone(), reason: self.clean(reason) }
    }

    pub(super) fn timeout(&self) -> Error {
        Error::Timeout {
            endpoint: self.endpoint.clone(),
            seconds: self.settings.timeout.as_secs_f64(),
        }
    }

    /// Makes a text fit for an error: one line, bounded, and without the API key where it is echoed.
    ///
    /// The key goes first: a text that was cut before could end during it.
    fn clean(&self, text: &str) -> String {
        let key = self.settings.api_key.as_ref().map_or("", |key| key.expose_secret());
        let text = if key.is_empty() { text.to_owned() } else { text.replace(key, "[API key]") };
        match wire::excerpt(&text) {
            empty if empty.is_empty() => "(no message)".to_owned(),
            line => line,
        }
    }
}

/// Writes the headers by which gateways attribute cost.
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

/// Percent-encodes what a header cannot carry everywhere.
fn printable(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            0x20..=0x7e => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// Returns the innermost cause of an error, which holds the useful part ("connection refused").
fn cause(error: &dyn std::error::Error) -> String {
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
