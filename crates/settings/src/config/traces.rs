//! The sections of traces and metrics: where spans and numbers go, what of them, and how often.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

use super::resolve::{
    Section, Setting, Sources, any, http_address, if_any, positive, section, word,
};
use super::strict::{Error, Invalid};

section! {
    /// Keys of the traces section.
    TraceKeys, TracesFile, "traces" {
        /// Base address of an OTLP collector; without one, traces are not exported.
        otlp_endpoint: Option<String> = None, "OTEL_EXPORTER_OTLP_ENDPOINT", if_any(check_collector);
        /// How the collector is spoken to: `http` (binary protobuf) or `grpc`.
        protocol: TraceProtocol = TraceProtocol::Http, "OTEL_EXPORTER_OTLP_PROTOCOL", any;
        /// Compression of requests: `gzip` or `none`.
        compression: Compression = Compression::Gzip, "OTEL_EXPORTER_OTLP_COMPRESSION", any;
        /// Milliseconds that one request may take.
        timeout_ms: u64 = 5_000, "OTEL_EXPORTER_OTLP_TIMEOUT", positive;
        /// File with CA certificates, as PEM, that are trusted for the collector in addition to the usual ones.
        certificate: Option<PathBuf> = None, "OTEL_EXPORTER_OTLP_CERTIFICATE", any;
        /// Environment variable that holds headers for the collector, as `NAME=VALUE,NAME=VALUE`.
        headers_env: Option<String> = None, "PERIHELION_TRACES_HEADERS_ENV", any;
        /// The unit of a trace ID: `run` or `thread`.
        scope: TraceScope = TraceScope::Run, "PERIHELION_TRACES_SCOPE", any;
        /// The user of these runs, unless a request names one.
        user: Option<String> = None, "PERIHELION_TRACES_USER", any;
        /// Tags of every trace, separated by commas.
        tags: String = String::new(), "PERIHELION_TRACES_TAGS", any;
        /// The deployment environment, such as `staging`.
        environment: Option<String> = None, "PERIHELION_TRACES_ENVIRONMENT", any;
        /// Send what people, models and tools wrote as well, each text capped.
        content: bool = false, "PERIHELION_TRACES_CONTENT", any;
    }
}

#[derive(Clone, Debug)]
pub struct Traces {
    pub otlp_endpoint: Option<String>,
    pub transport: Transport,
    pub scope: TraceScope,
    pub content: bool,
    /// Labels of every trace; a request may give its own.
    pub user: Option<String>,
    pub tags: Vec<String>,
    pub environment: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Transport {
    /// The address is used as it is, and not as a base.
    pub is_exact: bool,
    pub protocol: TraceProtocol,
    pub compression: Compression,
    /// How long one request may take; a delivery may make several.
    pub timeout: Duration,
    /// CA certificates, as PEM, that are trusted for the collector in addition to the usual ones.
    pub certificate: Option<PathBuf>,
    /// Sent with each request; read from the environment, never from the file.
    pub headers: Vec<(String, SecretString)>,
}

#[derive(Clone, Debug)]
pub struct Collector {
    /// Over HTTP `/v1/` and the signal's name are added unless it ends so.
    pub endpoint: String,
    pub transport: Transport,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceScope {
    /// A run, with the runs that continued with it after a crash.
    #[default]
    Run,
    /// The whole thread; its id is the trace's.
    Thread,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceProtocol {
    #[serde(alias = "http/protobuf")]
    Http,
    Grpc,
}

impl Setting for TraceProtocol {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    Gzip,
    None,
}

impl Setting for Compression {}

impl Setting for TraceScope {}

impl TraceKeys {
    fn transport(
        &self,
        is_exact: bool,
        headers_env: Option<&str>,
        sources: &Sources<'_>,
    ) -> Result<Transport, Error> {
        Ok(Transport {
            is_exact,
            protocol: self.protocol,
            compression: self.compression,
            timeout: Duration::from_millis(self.timeout_ms),
            certificate: self.certificate.clone(),
            headers: match headers_env {
                Some(variable) => headers(variable, false, sources)?,
                None => headers("OTEL_EXPORTER_OTLP_HEADERS", true, sources)?,
            },
        })
    }
}

impl Section for Traces {
    type File = TracesFile;
    const KEYS: &'static [super::Key] = TraceKeys::KEYS;

    fn resolve(file: TracesFile, sources: &Sources<'_>) -> Result<Self, Error> {
        let is_exact = sources.env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").is_some();
        let is_off = is_switched_off("OTEL_TRACES_EXPORTER", sources);
        let env = |name: &str| of_signal("TRACES", name, sources);
        let sources = &Sources { options: sources.options, env: &env, file: sources.file };
        let keys = TraceKeys::resolve(file, sources)?;
        let transport = keys.transport(is_exact, keys.headers_env.as_deref(), sources)?;
        let tags = keys.tags.split(',').map(str::trim);
        Ok(Self {
            otlp_endpoint: keys.otlp_endpoint.filter(|_| !is_off),
            transport,
            scope: keys.scope,
            content: keys.content,
            user: keys.user,
            tags: tags.filter(|tag| !tag.is_empty()).map(str::to_owned).collect(),
            environment: keys.environment,
        })
    }
}

section! {
    /// Keys of the metrics section.
    MetricKeys, MetricsFile, "metrics" {
        /// Address at which a collector accepts metrics, used unchanged; by default that of the traces' collector.
        otlp_endpoint: Option<String> = None, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", if_any(check_collector);
        /// Milliseconds between deliveries.
        interval_ms: u64 = 60_000, "OTEL_METRIC_EXPORT_INTERVAL", positive;
        /// Whether counters are exported as totals (`cumulative`) or as increments (`delta`).
        temporality: Temporality = Temporality::Cumulative,
            "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", any;
    }
}

#[derive(Clone, Debug)]
pub struct Metrics {
    /// Their target; `None` means that they are not exported.
    pub otlp: Option<Collector>,
    /// Between deliveries.
    pub interval: Duration,
    pub temporality: Temporality,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Temporality {
    /// The start of the process.
    Cumulative,
    /// The last delivery.
    #[serde(alias = "lowmemory")]
    Delta,
}

impl Setting for Temporality {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        word(&text.to_ascii_lowercase())
    }
}

impl Metrics {
    /// Resolves the section; missing collector settings come from the traces' section.
    pub(super) fn resolve(
        file: MetricsFile,
        traces: TracesFile,
        sources: &Sources<'_>,
    ) -> Result<Self, Error> {
        let keys = MetricKeys::resolve(file, sources)?;
        let is_off = is_switched_off("OTEL_METRICS_EXPORTER", sources);
        let env = |name: &str| of_signal("METRICS", name, sources);
        let sources = &Sources { options: sources.options, env: &env, file: sources.file };
        let shared = TraceKeys::resolve(traces, sources)?;
        let is_exact = keys.otlp_endpoint.is_some();
        // The headers of the traces' collector are not sent to another one.
        let headers_env = shared.headers_env.as_deref().filter(|_| !is_exact);
        let transport = shared.transport(is_exact, headers_env, sources)?;
        // An address for traces alone is none for metrics.
        let base = shared
            .otlp_endpoint
            .filter(|address| !address.trim_end_matches('/').ends_with("/v1/traces"));
        let endpoint = keys.otlp_endpoint.or(base).filter(|_| !is_off);
        let otlp = endpoint.map(|endpoint| Collector { endpoint, transport });
        let interval = Duration::from_millis(keys.interval_ms);
        Ok(Self { otlp, interval, temporality: keys.temporality })
    }
}

/// Reads a variable of the OTLP exporters, the one for this signal alone before the one for all signals.
fn of_signal(signal: &str, name: &str, sources: &Sources<'_>) -> Option<String> {
    let own = name.strip_prefix("OTEL_EXPORTER_OTLP_");
    own.and_then(|rest| sources.env(&format!("OTEL_EXPORTER_OTLP_{signal}_{rest}")))
        .or_else(|| sources.env(name))
}

/// Returns whether the environment disables the OTLP export of a signal, or of all.
///
/// An unknown exporter is ignored, as the specification requires.
fn is_switched_off(exporter: &str, sources: &Sources<'_>) -> bool {
    let others = ["none", "prometheus", "zipkin", "console", "logging"];
    let is_other = |name: &str| others.contains(&name.trim().to_ascii_lowercase().as_str());
    sources.env(exporter).is_some_and(|value| value.split(',').all(is_other))
        || sources
            .env("OTEL_SDK_DISABLED")
            .is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

/// Reads headers as `NAME=VALUE,NAME=VALUE`; `encoded` values are percent-encoded, as the standard
/// variables ask.
fn headers(
    variable: &str,
    encoded: bool,
    sources: &Sources<'_>,
) -> Result<Vec<(String, SecretString)>, Error> {
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
        .ok_or_else(|| Error::Environment {
            variable: variable.to_owned(),
            source: Invalid::Headers,
        })
}

fn percent_decoded(text: &str) -> Option<String> {
    let decoded = percent_encoding::percent_decode_str(text);
    decoded.decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

pub fn check_collector(value: &(impl AsRef<str> + ?Sized)) -> Result<(), Invalid> {
    http_address(value.as_ref(), "http://localhost:4318", "headers_env")
}
