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
        /// Base address of an OTLP collector; none: nothing is sent.
        otlp_endpoint: Option<String> = None, "OTEL_EXPORTER_OTLP_ENDPOINT", if_any(check_collector);
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
    #[serde(alias = "http/protobuf")]
    Http,
    Grpc,
}

impl Setting for TraceProtocol {}

/// How requests are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    Gzip,
    None,
}

impl Setting for Compression {}

impl Setting for TraceScope {}

impl Section for Traces {
    type File = TracesFile;
    const KEYS: &'static [super::Key] = TraceKeys::KEYS;

    fn resolve(file: TracesFile, sources: &Sources<'_>) -> Result<Self, Error> {
        let is_exact = sources.env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").is_some();
        let is_off = is_switched_off("OTEL_TRACES_EXPORTER", sources);
        let env = |name: &str| of_signal("TRACES", name, sources);
        let sources = &Sources { options: sources.options, env: &env, file: sources.file };
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

section! {
    /// Keys of the metrics section.
    MetricKeys, MetricsFile, "metrics" {
        /// Address at which a collector takes metrics, used as it is; none: that of the traces' collector.
        otlp_endpoint: Option<String> = None, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", if_any(check_collector);
        /// Milliseconds between deliveries.
        interval_ms: u64 = 60_000, "OTEL_METRIC_EXPORT_INTERVAL", positive;
        /// Whether counters are sent as totals (`cumulative`) or as what was added (`delta`).
        temporality: Temporality = Temporality::Cumulative,
            "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", any;
    }
}

/// Everything the settings say of metrics.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Where they are sent; none: they are not.
    pub otlp: Option<MetricsCollector>,
    /// Between deliveries.
    pub interval: Duration,
    pub temporality: Temporality,
}

/// Where metrics are sent, and how.
#[derive(Clone, Debug)]
pub struct MetricsCollector {
    pub endpoint: String,
    /// The address is used as it is, and not as a base.
    pub is_exact: bool,
    pub protocol: TraceProtocol,
    pub compression: Compression,
    /// How long one request may take.
    pub timeout: Duration,
    pub certificate: Option<PathBuf>,
    pub headers: Vec<(String, SecretString)>,
}

/// What the numbers of counters and histograms count from.
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
    /// Resolves the section; what it does not say of the collector, that of the traces does.
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
        let headers = match shared.headers_env.as_deref().filter(|_| !is_exact) {
            Some(variable) => headers(variable, false, sources)?,
            // Another collector is not told what the traces' one is.
            None => headers("OTEL_EXPORTER_OTLP_HEADERS", true, sources)?,
        };
        // An address for traces alone is none for metrics.
        let base = shared
            .otlp_endpoint
            .filter(|address| !address.trim_end_matches('/').ends_with("/v1/traces"));
        let endpoint = keys.otlp_endpoint.or(base).filter(|_| !is_off);
        let otlp = endpoint.map(|endpoint| MetricsCollector {
            endpoint,
            is_exact,
            protocol: shared.protocol,
            compression: shared.compression,
            timeout: Duration::from_millis(shared.timeout_ms),
            certificate: shared.certificate,
            headers,
        });
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

/// Returns whether the environment wants nothing of a signal, or of any, to be sent as OTLP.
///
/// An exporter that nobody knows is ignored, as the specification asks.
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

/// Checks the address of a collector.
///
/// # Errors
/// What is wrong with it, for the place where it was found.
pub fn check_collector(value: &(impl AsRef<str> + ?Sized)) -> Result<(), Invalid> {
    http_address(value.as_ref(), "http://localhost:4318", "headers_env")
}
