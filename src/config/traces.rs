//! The traces section: where spans go, and what of them.

use secrecy::SecretString;
use serde::Deserialize;

use super::resolve::{Setting, Sources, any, section};
use super::strict::Error;

section! {
    /// Keys of the traces section.
    TraceKeys, TracesFile, "traces" {
        /// Base address of an OTLP/HTTP collector; none: nothing is sent.
        otlp_endpoint: Option<String> = None, "OTEL_EXPORTER_OTLP_ENDPOINT", collector;
        /// Environment variable that holds headers for the collector, as `NAME=VALUE,NAME=VALUE`.
        headers_env: Option<String> = None, "PERIHELION_TRACES_HEADERS_ENV", any;
        /// What a trace id stands for: `run` or `thread`.
        scope: TraceScope = TraceScope::Run, "PERIHELION_TRACES_SCOPE", any;
        /// Send what people, models and tools wrote as well, each text capped.
        content: bool = false, "PERIHELION_TRACES_CONTENT", any;
    }
}

/// Everything the settings say of traces.
#[derive(Clone, Debug)]
pub struct Traces {
    pub otlp_endpoint: Option<String>,
    pub scope: TraceScope,
    pub content: bool,
    /// For the collector; read from the environment, never from the file.
    pub headers: Vec<(String, SecretString)>,
}

/// What a trace id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceScope {
    /// A run, with the runs that went on with it after a crash.
    Run,
    /// The whole thread; its id is the trace's.
    Thread,
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
        let TraceKeys { otlp_endpoint, headers_env, scope, content } =
            TraceKeys::resolve(file, sources)?;
        let headers = match &headers_env {
            Some(variable) => headers(variable, sources)?,
            None => Vec::new(),
        };
        Ok(Self { otlp_endpoint, scope, content, headers })
    }
}

fn headers(variable: &str, sources: &Sources<'_>) -> Result<Vec<(String, SecretString)>, Error> {
    let wrong = |message: &str| Error::Environment {
        variable: variable.to_owned(),
        message: message.to_owned(),
    };
    // As with an API key, a variable that is not set means: none.
    let Some(text) = sources.env(variable) else { return Ok(Vec::new()) };
    let header = |one: &str| {
        let (name, value) = one.split_once('=')?;
        let name = reqwest::header::HeaderName::try_from(name.trim()).ok()?;
        reqwest::header::HeaderValue::try_from(value.trim()).ok()?;
        Some((name.to_string(), SecretString::from(value.trim())))
    };
    text.split(',')
        .filter(|one| !one.trim().is_empty())
        .map(header)
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| {
            wrong("expected headers as NAME=VALUE, separated by commas (the value is not shown)")
        })
}

fn collector(value: &Option<String>) -> Result<(), String> {
    value.as_deref().map_or(Ok(()), check_collector)
}

/// Checks the address of a collector.
///
/// # Errors
/// What is wrong with it, to be said after its name.
pub fn check_collector(value: &str) -> Result<(), String> {
    match reqwest::Url::parse(value) {
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Err("must not carry a user name or password; name a variable in headers_env".to_owned())
        }
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.host().is_some() => Ok(()),
        _ => {
            Err("must be an http:// or https:// address, such as http://localhost:4318".to_owned())
        }
    }
}
