//! The HTTP layer under async-openai: keeps what its own layer would lose of a refusal.

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
use crate::Error;
use perihelion_settings::config::Api;

/// Bytes of a refusal's body that are read; the rest cannot help anyone.
const REFUSAL_BYTES: usize = 64 * 1024;

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
    /// The endpoint sent a whole answer although a stream was asked for.
    #[error("a whole answer in place of a stream")]
    Whole(String),
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
            let streamed = is(request.headers(), ACCEPT, "text/event-stream");
            let response = client.execute(request).await?;
            let diverted = if !response.status().is_success() {
                let status = response.status().as_u16();
                let retry_after = retry::retry_after(response.headers());
                let body = read_up_to(response, REFUSAL_BYTES).await?;
                Diverted::Refused { status, retry_after, body }
            } else if streamed && is(response.headers(), CONTENT_TYPE, "application/json") {
                Diverted::Whole(read_up_to(response, WHOLE_BYTES).await?)
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

fn is(headers: &HeaderMap, name: reqwest::header::HeaderName, prefix: &str) -> bool {
    headers.get(name).and_then(|value| value.to_str().ok()).is_some_and(|v| v.starts_with(prefix))
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
