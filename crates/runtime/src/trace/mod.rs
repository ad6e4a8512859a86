//! Traces for display, and their export.
//!
//! [`Traces`] reads one, replays it or compares two, [`trace_finder`] searches, [`Replayer`] sends old traces again.

mod replayer;
mod traces;

use std::sync::Arc;

use serde::Serialize;

pub use self::replayer::{Replayed, Replayer};
pub use self::traces::{Analysis, AnswerAgain, Traces};
use super::Error;
use super::threads::is_abandoned;
use perihelion_engine::checkpoint::{Store, ThreadInfo, ThreadStatus};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_settings::config::{self, Collector, Settings};
use perihelion_telemetry::reading::{self, Event, Finder, Note, Overview, TraceDiff};
use perihelion_telemetry::{About, ContinuedRuns, Exporter, Labels, Span, TraceId, View, otlp};

#[derive(Clone, Debug, Serialize)]
pub struct Trace {
    #[serde(flatten)]
    pub head: TraceHead,
    pub events: Vec<Event>,
    /// The root first, parents before their children.
    pub spans: Vec<Span>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub analyses: Vec<Analysis>,
}

#[derive(Clone, Debug, Serialize)]
pub struct TraceHead {
    pub thread_id: ThreadId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Number of the first run in it.
    pub run: u32,
    /// Runs of the thread, including those in other traces.
    pub runs: u32,
    pub trace_id: TraceId,
    pub overview: Overview,
    /// Loops, repairs and what changed between attempts, by span.
    pub notes: Vec<Note>,
}

impl Trace {
    /// Writes the trace as the JSON form of an OTLP request, with content if the settings permit it.
    pub fn to_otlp_json(&self, settings: &Settings) -> Result<String, serde_json::Error> {
        let mut spans = self.spans.clone();
        labels(settings).apply(&mut spans);
        otlp::to_json(&spans, settings.traces.content)
    }

    pub fn to_page(&self) -> Result<String, serde_json::Error> {
        let thread = self.head.title.clone().unwrap_or_else(|| self.head.thread_id.to_string());
        let title = format!("{thread} · run {}", self.head.run);
        reading::page(&title, &self.head, &self.spans)
    }

    pub fn compare(&self, other: &Self) -> TraceDiff {
        reading::compare(&self.spans, &other.spans)
    }

    pub fn newest_run(&self) -> u32 {
        last_run(&self.spans).unwrap_or(self.head.run)
    }
}

/// Returns the number of the last run in a trace.
fn last_run(spans: &[Span]) -> Option<u32> {
    let About::Workflow { runs, .. } = &spans.first()?.about else { return None };
    Some(runs.last()?.number)
}

/// Makes a finder of a store's traces. Content is shown if the settings capture it.
pub fn trace_finder(store: Arc<dyn Store>, settings: &Settings) -> Finder {
    Finder::new(store, view(settings), labels(settings))
}

/// Returns whether a process works on a thread, as known to this process.
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

fn view(settings: &Settings) -> View {
    View {
        scope: settings.traces.scope,
        content: settings.traces.content,
        rounds: Some(settings.limits.max_reflections.saturating_add(1)),
    }
}

/// Returns the collector of traces; `None` means that they are not exported.
pub fn collector(settings: &Settings) -> Option<Collector> {
    let config::Traces { otlp_endpoint, transport, .. } = &settings.traces;
    Some(Collector { endpoint: otlp_endpoint.clone()?, transport: transport.clone() })
}

fn labels(settings: &Settings) -> Labels {
    let traces = &settings.traces;
    Labels {
        user: traces.user.clone(),
        tags: traces.tags.clone(),
        environment: traces.environment.clone(),
    }
}

pub(super) fn exporter(
    settings: &Settings,
    continued: ContinuedRuns,
) -> Result<Option<Exporter>, otlp::Error> {
    let Some(collector) = collector(settings) else { return Ok(None) };
    let prices = settings.models.price_list();
    Exporter::new(&collector, view(settings), labels(settings), prices, continued).map(Some)
}
