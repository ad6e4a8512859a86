//! How a model endpoint is reached: client, credentials, refusals, and when a failed attempt is made again.

use std::net::IpAddr;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use perihelion_clock as clock;
use perihelion_settings::config::Api;
use reqwest::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};
use reqwest::{Client, RequestBuilder, Response};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

/// Bytes of a whole answer; more is refused.
pub const WHOLE_BYTES: usize = 16 * 1024 * 1024;

/// Builds the HTTP client for an address; on this machine no proxy of the environment is used.
///
/// # Errors
/// When there are no root certificates, for instance.
pub fn client(connect_timeout: Duration, url: &str) -> reqwest::Result<Client> {
    let mut builder = Client::builder();
    if is_loopback(url) {
        builder = builder.no_proxy();
        if url.starts_with("http:") {
            // No TLS, so the root certificates of the machine, which are hundreds of files, are not read.
            builder = builder.tls_certs_only([]);
        }
    }
    builder
        .connect_timeout(connect_timeout)
        // A redirect would send prompts to a host that is not configured.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("perihelion/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Returns whether an address is on this machine, which a proxy cannot reach.
pub fn is_loopback(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| url.host_str().is_some_and(is_loopback_host))
}

/// Returns whether a host is this machine, by name or address.
pub fn is_loopback_host(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[derive(Clone, Debug)]
pub struct Credentials {
    base: String,
    query: Vec<(String, String)>,
    key: Option<SecretString>,
    api: Api,
}

impl Credentials {
    /// Splits a query off the address, so that gateways that want one (`?api-version=…`) get it.
    pub fn new(url: &str, key: Option<SecretString>) -> Self {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let query = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let base = base.trim_end_matches('/').to_owned();
        Self { base, query, key, api: Api::ChatCompletions }
    }

    /// Sends the key as another API wants it.
    #[must_use]
    pub fn speaking(self, api: Api) -> Self {
        Self { api, ..self }
    }

    /// Returns the address without its query.
    pub fn base(&self) -> &str {
        &self.base
    }

    pub fn post(&self, http: &Client, path: &str) -> RequestBuilder {
        self.request(http.post(format!("{}{path}", self.base)))
    }

    pub fn get(&self, http: &Client, path: &str) -> RequestBuilder {
        self.request(http.get(format!("{}{path}", self.base)))
    }

    fn request(&self, request: RequestBuilder) -> RequestBuilder {
        request.query(&self.query).headers(self.headers())
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let key = self.key.as_ref().map_or("", |key| key.expose_secret());
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
}

/// Returns the innermost cause of an error, which has the useful part ("connection refused").
pub fn cause(error: &dyn std::error::Error) -> String {
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

/// Returns an error with all of its causes, the innermost last.
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let all = std::iter::successors(Some(error), |error| error.source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Reads a body as text, up to a number of bytes.
///
/// # Errors
/// When the connection breaks before.
pub async fn read_up_to(mut response: Response, limit: usize) -> reqwest::Result<String> {
    let (body, _) = unpacked(&mut response, limit).await?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// Reads and unpacks a body up to a number of bytes; returns whether there are more.
///
/// # Errors
/// When the connection breaks before.
pub async fn unpacked(response: &mut Response, limit: usize) -> reqwest::Result<(Vec<u8>, bool)> {
    let [encodings, media] = [CONTENT_ENCODING, CONTENT_TYPE].map(|name| {
        let values = response.headers().get_all(name).iter();
        let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
        values.join(",").to_ascii_lowercase()
    });
    let (body, is_cut) = bounded(response, limit).await?;
    let (body, is_more) = perihelion_mime::unpacked(body, &encodings, &media, limit);
    Ok((body, is_cut || is_more))
}

/// Reads the bytes of a body as they were sent, up to a number of them; returns whether there are more.
///
/// # Errors
/// When the connection breaks before.
pub async fn bounded(response: &mut Response, limit: usize) -> reqwest::Result<(Vec<u8>, bool)> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = limit - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok((body, true));
        }
    }
    Ok((body, false))
}

/// Returns the waits between attempts, one per retry.
pub fn delays(
    retries: u32,
    first: Duration,
    longest: Duration,
) -> impl Iterator<Item = Duration> + Send + use<> {
    ExponentialBuilder::default()
        .with_min_delay(first)
        .with_max_delay(longest)
        .with_max_times(usize::try_from(retries).unwrap_or(usize::MAX))
        .with_jitter()
        .build()
}

pub fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 425 | 429) || status >= 500
}

/// Reads `Retry-After` as seconds or as an HTTP date, and `retry-after-ms` if it is sent.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|text| text.parse().ok()) {
        return Some(Duration::from_millis(ms));
    }
    let text = text("retry-after")?;
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = chrono::DateTime::parse_from_rfc2822(text).ok()?;
    Some((date.to_utc() - clock::now()).to_std().unwrap_or_default())
}

/// Returns the error inside a body or its choice: its message and, if it is a number, its code.
pub fn error_in(value: &Value) -> Option<(String, Option<u16>)> {
    let is_error = |error: &&Value| match error {
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => false,
    };
    let places = [value.get("error"), value.pointer("/choices/0/error")];
    let error = places.into_iter().flatten().find(is_error)?;
    let message = ["message", "detail", "type"]
        .iter()
        .find_map(|key| error.get(key).and_then(Value::as_str))
        .or_else(|| error.as_str())
        .map_or_else(|| error.to_string(), str::to_owned);
    // The code often says more than the sentence: `insufficient_quota`, `model_not_found`.
    let kind = error
        .get("code")
        .and_then(Value::as_str)
        .filter(|kind| kind.parse::<u16>().is_err() && !message.contains(kind));
    let message = kind.map_or_else(|| message.clone(), |kind| format!("{message} ({kind})"));
    let code = ["code", "status"].iter().find_map(|key| {
        let code = error.get(key)?;
        code.as_u64().or_else(|| code.as_str()?.parse().ok()).and_then(|n| u16::try_from(n).ok())
    });
    Some((message, code))
}

pub fn refusal_message(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(body) else { return body.to_owned() };
    error_in(&value).map(|(message, _)| message).unwrap_or_else(|| {
        ["message", "detail"]
            .iter()
            .find_map(|key| value.get(key).and_then(Value::as_str))
            .map_or_else(|| body.to_owned(), str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(
            reqwest::header::HeaderName::from_static(name),
            value.parse().unwrap(),
        )])
    }

    #[test]
    fn retry_after_is_read_as_seconds_as_milliseconds_and_as_a_date() {
        assert_eq!(retry_after(&headers("retry-after", "7")), Some(Duration::from_secs(7)));
        assert_eq!(
            retry_after(&headers("retry-after-ms", "250")),
            Some(Duration::from_millis(250))
        );
        let past = headers("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT");
        assert_eq!(retry_after(&past), Some(Duration::ZERO));
        let future = headers("retry-after", "Sun, 21 Oct 2198 07:28:00 GMT");
        assert!(retry_after(&future).unwrap() > Duration::from_secs(1_000_000));
        assert_eq!(retry_after(&headers("retry-after", "soon")), None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
