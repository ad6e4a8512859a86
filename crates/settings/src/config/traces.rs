//! The traces section: where spans go, and what of them.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

use super::resolve::{Setting, Sources, any, positive, section};
use super::strict::Error;

section! {
    /// Keys of the traces section.
    TraceKeys, TracesFile, "traces" {
        /// Base address of an OTLP collector; none: nothing is sent.
        otlp_endpoint: Option<String> = None, "OTEL_EXPORTER_OTLP_ENDPOINT", collector;
        /// How the collector is spoken to: `http` (binary protobuf) or `grpc`.
        protocol: TraceProtocol = TraceProtocol::Http, "OTEL_EXPORTER_OTLP_PROTOCOL", any;
        /// Compression of requests: `gzip` or `none`.
        compression: Compression = Compression::Gzip, "OTEL_EXPORTER_OTLP_COMPRESSION", any;
        /// Milliseconds that one request may take.
        timeout_ms: u64 = 5_000, "OTEL_EXPORTER_OTLP_TIMEOUT", positive;
        /// File with the certificates, as PEM, by which the collector's own is trusted beside the usual ones.
        certificate: Option<PathBuf> = None, "OTEL_EXPORTER_OTLP_CERTIFICATE", any;
        /// Environment variable that holds headers for the collector, as `NAME=VALUE,NAME=VALUE`.
        headers_env: Option<String> = None, "PERIHELION_TRACES_HEADERS_ENV", any;
        /// What a trace id stands for: `run` or `thread`.
        scope: TraceScope = TraceScope::Run, "PERIHELION_TRACES_SCOPE", any;
        /// Whose runs these are, unless a request says so itself.
        user: Option<String> = None, "PERIHELION_TRACES_USER", any;
        /// Tags of every trace, separated by commas.
        tags: String = String::new(), "PERIHELION_TRACES_TAGS", any;
        /// Where the program runs, such as `staging`.
        environment: Option<String> = None, "PERIHELION_TRACES_ENVIRONMENT", any;
        /// Send what people, models and tools wrote as well, each text capped.
        content: bool = false, "PERIHELION_TRACES_CONTENT", any;
    }
}

/// Everything the settings say of traces.
#[derive(Clone, Debug)]
pub struct Traces {
    pub otlp_endpoint: Option<String>,
    /// The address is used as it is, and not as a base.
    pub is_exact: bool,
    pub protocol: TraceProtocol,
    pub compression: Compression,
    /// How long one request may take.
    pub timeout: Duration,
    pub certificate: Option<PathBuf>,
    pub scope: TraceScope,
    pub content: bool,
    /// Labels of every trace; a request may give its own.
    pub user: Option<String>,
    pub tags: Vec<String>,
    pub environment: Option<String>,
    /// For the collector; read from the environment, never from the file.
    pub headers: Vec<(String, SecretString)>,
}

/// What a trace id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceScope {
    /// A run, with the runs that continued with it after a crash.
    Run,
    /// The whole thread; its id is the trace's.
    Thread,
}

/// How a collector is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceProtocol {
    Http,
    Grpc,
}

impl Setting for TraceProtocol {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "http" | "http/protobuf" => Ok(Self::Http),
            "grpc" => Ok(Self::Grpc),
            _ => Err(format!("expected `http/protobuf` or `grpc`: {text}")),
        }
    }
}

/// How requests are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    Gzip,
    None,
}

impl Setting for Compression {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "gzip" => Ok(Self::Gzip),
            "none" => Ok(Self::None),
            _ => Err(format!("expected `gzip` or `none`: {text}")),
        }
    }
}

impl Setting for TraceScope {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "run" => Ok(Self::Run),
            "thread" => Ok(Self::Thread),
            _ => Err(format!("expected `run` or `thread`: {text}")),
        }
    }
}

impl Traces {
    pub(super) const KEYS: &'static [super::Key] = TraceKeys::KEYS;

    pub(super) fn resolve(file: TracesFile, sources: &Sources<'_>) -> Result<Self, Error> {
        let is_exact = sources.env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").is_some();
        let is_off = is_switched_off("OTEL_TRACES_EXPORTER", sources);
        let env = |name: &str| of_signal("TRACES", name, sources);
        let sources = &Sources { options: sources.options.clone(), env: &env, file: sources.file };
        let keys = TraceKeys::resolve(file, sources)?;
        let headers = match &keys.headers_env {
            Some(variable) => headers(variable, false, sources)?,
            None => headers("OTEL_EXPORTER_OTLP_HEADERS", true, sources)?,
        };
        Ok(Self {
            otlp_endpoint: keys.otlp_endpoint.filter(|_| !is_off),
            is_exact,
            certificate: keys.certificate,
            protocol: keys.protocol,
            compression: keys.compression,
            timeout: Duration::from_millis(keys.timeout_ms),
            scope: keys.scope,
            content: keys.content,
            headers,
            user: keys.user,
            tags: keys
                .tags
                .split(',')
                .map(str::trim)
                .filter(|tag| !tag.is_empty())
                .map(str::to_owned)
                .collect(),
            environment: keys.environment,
        })
    }
}

/// Reads a variable of the OTLP exporters, the one for this signal alone before the one for all signals.
pub(super) fn of_signal(signal: &str, name: &str, sources: &Sources<'_>) -> Option<String> {
    let own = name.strip_prefix("OTEL_EXPORTER_OTLP_");
    own.and_then(|rest| sources.env(&format!("OTEL_EXPORTER_OTLP_{signal}_{rest}")))
        .or_else(|| sources.env(name))
}

/// Returns whether the environment wants nothing of a signal, or of any, to be sent as OTLP.
///
/// An exporter that nobody knows is ignored, as the specification asks.
pub(super) fn is_switched_off(exporter: &str, sources: &Sources<'_>) -> bool {
    let others = ["none", "prometheus", "zipkin", "console", "logging"];
    let is_other = |name: &str| others.contains(&name.trim().to_ascii_lowercase().as_str());
    sources.env(exporter).is_some_and(|value| value.split(',').all(is_other))
        || sources
            .env("OTEL_SDK_DISABLED")
            .is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

/// Reads headers as `NAME=VALUE,NAME=VALUE`; `encoded` values are percent-encoded, as the standard
/// variables ask.
pub(super) fn headers(
    variable: &str,
    encoded: bool,
    sources: &Sources<'_>,
) -> Result<Vec<(String, SecretString)>, Error> {
    let wrong = |message: &str| Error::Environment {
        variable: variable.to_owned(),
        message: message.to_owned(),
    };
    // As with an API key, a variable that is not set means: none.
    let Some(text) = sources.env(variable) else { return Ok(Vec::new()) };
    let header = |one: &str| {
        let (name, value) = one.split_once('=')?;
        let name = reqwest::header::HeaderName::try_from(name.trim()).ok()?;
        let value = if encoded { percent_decoded(value.trim())? } else { value.trim().to_owned() };
        reqwest::header::HeaderValue::try_from(value.as_str()).ok()?;
        Some((name.to_string(), SecretString::from(value)))
    };
    text.split(',')
        .filter(|one| !one.trim().is_empty())
        .map(header)
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| {
            wrong("expected headers as NAME=VALUE, separated by commas (the value is not shown)")
        })
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b'%' => {
                let (digits, after) = after.split_at_checked(2)?;
                let digits = std::str::from_utf8(digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                after
            }
            plain => {
                bytes.push(*plain);
                after
            }
        };
    }
    String::from_utf8(bytes).ok()
}

pub(super) fn collector(value: &Option<String>) -> Result<(), String> {
    value.as_deref().map_or(Ok(()), check_collector).map_err(|error| error.to_string())
}

/// What is wrong with the address of a collector, to be said after its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectorError {
    #[error("must not carry a user name or password; name a variable in headers_env")]
    Credentials,
    #[error("must be an http:// or https:// address, such as http://localhost:4318")]
    NotHttp,
}

/// Checks the address of a collector.
///
/// # Errors
/// [`CollectorError`].
pub fn check_collector(value: &str) -> Result<(), CollectorError> {
    match reqwest::Url::parse(value) {
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Err(CollectorError::Credentials)
        }
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.host().is_some() => Ok(()),
        _ => Err(CollectorError::NotHttp),
    }
}
