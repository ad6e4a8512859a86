//! The metrics section: where numbers go, and how often.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

use super::invalid::Invalid;
use super::resolve::{Section, Setting, Sources, any, if_any, positive, section, word};
use super::strict::Error;
use super::traces::{
    Compression, TraceKeys, TraceProtocol, TracesFile, check_collector, headers, is_switched_off,
    of_signal,
};

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
