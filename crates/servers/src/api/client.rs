//! Sends requests: with credentials, within limits, and again if that is safe.

use std::time::Duration;

use perihelion_http::reach::{self, with_causes};
use perihelion_openapi::{Base, Operation, Request, Scheme};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, LOCATION};
use serde_json::{Map, Value};

use super::auth::Credentials;
use super::body::body;
use super::{Error, Options, Result};

/// Longest wait that a server can request.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How often a request is sent again because the server asked for it.
const RETRIES: u32 = 2;
const REDIRECTS: u32 = 5;
/// Headers of an answer that are shown: the rest is about the connection, or a secret.
const SHOWN: [&str; 16] = [
    "content-type",
    "content-length",
    "content-language",
    "content-location",
    "location",
    "link",
    "etag",
    "last-modified",
    "date",
    "retry-after",
    "allow",
    "x-request-id",
    "x-total-count",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
];

/// An answer, read within bounds.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Map<String, Value>,
    pub body: Value,
    pub is_cut: bool,
    /// Bytes of the body.
    pub size: usize,
}

pub struct Client {
    client: reqwest::Client,
    pub credentials: Credentials,
    timeout: Duration,
    max_body: usize,
    fixed: Vec<(String, String)>,
}

#[derive(Clone, Copy)]
pub struct Sending<'a> {
    pub request: &'a Request,
    pub base: &'a Base,
    pub operation: &'a Operation,
    pub schemes: &'a [Scheme],
}

impl Client {
    pub fn open(options: &Options) -> Result<Self> {
        perihelion_settings::config::tls::install();
        let client = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(10))
            // Each redirect is looked at here, since it would take the credentials along.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("perihelion/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(Error::Client)?;
        let config = super::auth::Config::load(options.auth.as_deref())?;
        let max_body = (options.max_body_kb as usize) << 10;
        let credentials = Credentials::open(config, client.clone());
        Ok(Self {
            client,
            credentials,
            timeout: options.timeout(),
            max_body,
            fixed: options.header.clone(),
        })
    }

    /// Returns whether requests contain anything that only the operator's addresses may see.
    pub fn has_secrets(&self) -> bool {
        !self.fixed.is_empty() || !self.credentials.config.is_empty()
    }

    /// Sends a request; renews a rejected token once, and waits if the server requests it.
    pub async fn send(&self, sending: &Sending<'_>) -> Result<Answer> {
        let mut renewed = false;
        let mut waits = 0;
        loop {
            let mut request = sending.request.clone();
            for (name, value) in &self.fixed {
                let lower = name.to_ascii_lowercase();
                request.headers.retain(|(known, _)| *known != lower);
                request.headers.push((lower, value.clone()));
            }
            let token =
                self.credentials.apply(&mut request, sending.operation, sending.schemes).await?;
            let (status, headers, answer) = self.once(&request, sending.base).await?;
            if status == StatusCode::UNAUTHORIZED
                && !renewed
                && let Some(number) = token
                && self.credentials.refused(number).await
            {
                renewed = true;
                continue;
            }
            let may_repeat = status == StatusCode::TOO_MANY_REQUESTS
                || (status == StatusCode::SERVICE_UNAVAILABLE && sending.operation.is_read());
            let wait = reach::retry_after(&headers).filter(|wait| *wait <= LONGEST_WAIT);
            if let Some(wait) = wait.filter(|_| may_repeat && waits < RETRIES) {
                waits += 1;
                perihelion_engine::clock::sleep(wait).await;
                continue;
            }
            return Ok(answer);
        }
    }

    /// Sends once, following redirects of reads that stay within the base.
    async fn once(
        &self,
        request: &Request,
        base: &Base,
    ) -> Result<(StatusCode, HeaderMap, Answer)> {
        let mut url = request.url.clone();
        for _ in 0..=REDIRECTS {
            let answer = self.transmit(request, &url).await?;
            let status = answer.status();
            let is_read = matches!(request.method.as_str(), "GET" | "HEAD");
            let target = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let next =
                target.and_then(|target| url.join(target).ok()).filter(|next| base.contains(next));
            match next {
                Some(next) if status.is_redirection() && is_read => url = next,
                _ => {
                    let headers = answer.headers().clone();
                    let read = self.read(answer, request).await?;
                    return Ok((status, headers, read));
                }
            }
        }
        Err(self.failed(request, "it redirects in a circle"))
    }

    async fn transmit(&self, request: &Request, url: &url::Url) -> Result<reqwest::Response> {
        let method = reqwest::Method::from_bytes(request.method.as_bytes())
            .map_err(|_| self.failed(request, "no such method"))?;
        let mut builder = self.client.request(method, url.clone()).timeout(self.timeout);
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        if let Some(body) = &request.body {
            builder = builder.body(body.bytes.clone());
        }
        builder.send().await.map_err(|error| self.error(request, &error))
    }

    async fn read(&self, mut answer: reqwest::Response, request: &Request) -> Result<Answer> {
        let status = answer.status().as_u16();
        let mut headers = Map::new();
        for name in SHOWN {
            let values = answer.headers().get_all(name).iter();
            let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
            if !values.is_empty() {
                let shown = self.redact(request, &values.join(", "));
                headers.insert(name.to_owned(), Value::from(shown));
            }
        }
        let media = headers.get("content-type").and_then(Value::as_str).unwrap_or_default();
        let media = media.to_owned();
        let read = reach::unpacked(&mut answer, self.max_body).await;
        let (bytes, is_cut) = read.map_err(|error| self.error(request, &error))?;
        let size = bytes.len();
        Ok(Answer { status, headers, body: body(&bytes, &media), is_cut, size })
    }

    fn error(&self, request: &Request, error: &reqwest::Error) -> Error {
        if error.is_timeout() {
            let method = request.method.clone();
            let address = address(request);
            return Error::Timeout { method, address, limit: self.timeout };
        }
        let reached = !error.is_connect();
        let reason = if reached { "the exchange broke off" } else { "it cannot be reached" };
        let causes = std::error::Error::source(error).map(with_causes);
        let reason = [reason.to_owned()].into_iter().chain(causes).collect::<Vec<_>>().join(": ");
        self.failed(request, &self.redact(request, &reason))
    }

    /// Removes secrets from a text: the configured ones, and those of the request, whose token may have been fetched.
    fn redact(&self, request: &Request, text: &str) -> String {
        let is_fixed = |name: &str| {
            self.fixed.iter().any(|(fixed, _)| fixed.eq_ignore_ascii_case(name))
                && !name.starts_with("accept")
        };
        let mut shown = self.credentials.config.redact(text);
        for (name, value) in &request.headers {
            let secret = value.rsplit(' ').next().unwrap_or_default();
            // A year or another short word is no secret.
            if secret.len() >= 6 && (name == "authorization" || is_fixed(name)) {
                shown = shown.replace(secret, "[redacted]");
            }
        }
        shown
    }

    fn failed(&self, request: &Request, reason: &str) -> Error {
        Error::Http {
            method: request.method.clone(),
            address: address(request),
            reason: reason.to_owned(),
        }
    }
}

/// Shows an address without its query, which can contain keys.
fn address(request: &Request) -> String {
    let mut url = request.url.clone();
    url.set_query(None);
    url.into()
}
