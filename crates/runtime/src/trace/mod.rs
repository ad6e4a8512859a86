//! Traces as people look at them, and where they are sent.
//!
//! [`Traces`] reads one, replays it or compares two, [`trace_finder`] searches, [`Replayer`] sends old traces again.

mod panels;
mod replay;
mod replayer;
mod traces;

use std::sync::Arc;

use serde::Serialize;

pub use self::panels::Analysis;
pub use self::replayer::{Replayed, Replayer};
pub use self::traces::Traces;
use super::Error;
use super::threads::is_abandoned;
use perihelion_engine::checkpoint::{Store, ThreadInfo, ThreadStatus};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_settings::config::{Compression, Settings, TraceProtocol, TraceScope};
use perihelion_telemetry::otlp::{Collector, Protocol};
use perihelion_telemetry::reading::{self, Event, Finder, Note, Overview, TraceDiff};
use perihelion_telemetry::{
    About, ContinuedRuns, Exporter, Labels, Scope, Span, TraceId, View, otlp,
};

/// A run of a thread as a tree of spans.
#[derive(Clone, Debug, Serialize)]
pub struct Trace {
    #[serde(flatten)]
    pub head: TraceHead,
    /// What happened, as a plain list.
    pub events: Vec<Event>,
    /// The root first, parents before their children.
    pub spans: Vec<Span>,
    /// What led to the answers of analysts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub analyses: Vec<Analysis>,
}

/// What is said of a trace beside its spans.
#[derive(Clone, Debug, Serialize)]
pub struct TraceHead {
    pub thread_id: ThreadId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Number of the first run in it.
    pub run: u32,
    /// Runs of the thread, those in other traces too.
    pub runs: u32,
    pub trace_id: TraceId,
    pub overview: Overview,
    /// Loops, repairs and what changed between attempts, by span.
    pub notes: Vec<Note>,
}

impl Trace {
    /// Writes the trace as the JSON form of an OTLP request, with content where the settings say so.
    ///
    /// # Errors
    /// When a value has no JSON form; none of ours has that.
    pub fn to_otlp_json(&self, settings: &Settings) -> Result<String, serde_json::Error> {
        let mut spans = self.spans.clone();
        labels(settings).apply(&mut spans);
        otlp::to_json(&spans, settings.traces.content)
    }

    /// Writes the trace as a self-contained page.
    ///
    /// # Errors
    /// As [`Trace::to_otlp_json`].
    pub fn to_page(&self) -> Result<String, serde_json::Error> {
        let thread = self.head.title.clone().unwrap_or_else(|| self.head.thread_id.to_string());
        let title = format!("{thread} · run {}", self.head.run);
        reading::page(&title, &self.head, &self.spans)
    }

    /// Aligns this trace with another one and says what differs.
    pub fn compare(&self, other: &Self) -> TraceDiff {
        reading::compare(&self.spans, &other.spans)
    }

    /// Returns the number of the newest run in it.
    pub fn newest_run(&self) -> u32 {
        match self.spans.first().map(|root| &root.about) {
            Some(About::Workflow { runs, .. }) => {
                runs.last().map_or(self.head.run, |run| run.number)
            }
            _ => self.head.run,
        }
    }
}

/// Makes a finder of a store's traces. Content is shown if the settings capture it.
pub fn trace_finder(store: Arc<dyn Store>, settings: &Settings) -> Finder {
    Finder::new(store, view(settings), labels(settings))
}

/// Returns whether somebody is at work on a thread, as far as can be told from here.
///
/// A holder on this machine is looked up; one elsewhere is believed until its lease has run out by the clock
/// of this machine.
pub fn is_under_way(info: &ThreadInfo) -> bool {
    info.status == ThreadStatus::Busy
        && !is_abandoned(info)
        && info.lease_until.is_none_or(|until| until + LATE > clock::now())
}

/// How long a lease may be over before its holder counts as gone: clocks differ, and a renewal takes time.
const LATE: chrono::TimeDelta = chrono::TimeDelta::seconds(5);

pub(super) fn scope(settings: &Settings) -> Scope {
    match settings.traces.scope {
        TraceScope::Run => Scope::Run,
        TraceScope::Thread => Scope::Thread,
    }
}

fn view(settings: &Settings) -> View {
    View {
        scope: scope(settings),
        content: settings.traces.content,
        rounds: Some(settings.limits.max_reflections.saturating_add(1)),
    }
}

/// Returns the collector that the settings name.
pub fn collector(settings: &Settings) -> Option<Collector> {
    settings.traces.otlp_endpoint.clone().map(|endpoint| collector_at(endpoint, settings))
}

/// Returns the collector at an address, to be spoken to as the settings say.
fn collector_at(endpoint: String, settings: &Settings) -> Collector {
    let traces = &settings.traces;
    Collector {
        endpoint,
        is_exact: traces.is_exact,
        certificate: traces.certificate.clone(),
        headers: traces.headers.clone(),
        protocol: protocol(traces.protocol),
        gzip: traces.compression == Compression::Gzip,
        request_timeout: traces.timeout,
    }
}

/// Returns the collector of metrics that the settings name.
pub(super) fn metrics_collector(settings: &Settings) -> Option<Collector> {
    settings.metrics.otlp.clone().map(|metrics| Collector {
        endpoint: metrics.endpoint,
        is_exact: metrics.is_exact,
        certificate: metrics.certificate,
        headers: metrics.headers,
        protocol: protocol(metrics.protocol),
        gzip: metrics.compression == Compression::Gzip,
        request_timeout: metrics.timeout,
    })
}

fn protocol(protocol: TraceProtocol) -> Protocol {
    match protocol {
        TraceProtocol::Http => Protocol::Http,
        TraceProtocol::Grpc => Protocol::Grpc,
    }
}

fn labels(settings: &Settings) -> Labels {
    let traces = &settings.traces;
    Labels {
        user: traces.user.clone(),
        tags: traces.tags.clone(),
        environment: traces.environment.clone(),
    }
}

/// Makes the exporter that the settings ask for, of a process that continues certain runs.
pub(super) fn exporter(
    settings: &Settings,
    continued: ContinuedRuns,
) -> Result<Option<Exporter>, otlp::Error> {
    let Some(collector) = collector(settings) else { return Ok(None) };
    let prices = settings.models.price_list();
    Exporter::new(&collector, view(settings), labels(settings), prices, continued).map(Some)
}
