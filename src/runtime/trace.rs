//! Traces as people look at them, and where the settings send them.

use serde::Serialize;

use super::Error;
use crate::checkpoint::Store;
use crate::config::{Compression, Settings, TraceProtocol, TraceScope};
use crate::ids::ThreadId;
use crate::telemetry::otlp::{Collector, Protocol};
use crate::telemetry::{Exporter, Labels, Scope, Span, TraceId, View, Which, otlp, project, read};

/// A run of a thread as a tree of spans.
#[derive(Clone, Debug, Serialize)]
pub struct Trace {
    pub thread_id: ThreadId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Number of the first run in it.
    pub run: u32,
    pub trace_id: TraceId,
    /// The root first, parents before their children.
    pub spans: Vec<Span>,
}

/// Reads the trace that a run belongs to, the newest run's by default; no servers and no model are needed.
///
/// It carries what people, models and tools wrote: it is made from what the database holds anyway.
///
/// # Errors
/// [`Error::Trace`] when the thread or the run does not exist, or its steps are no longer kept.
pub async fn trace(
    store: &dyn Store,
    settings: &Settings,
    thread: ThreadId,
    run: Option<u32>,
) -> Result<Trace, Error> {
    let (rows, number) = read(store, thread, run.map_or(Which::Newest, Which::Number)).await?;
    let view = View { content: true, ..view(settings) };
    let spans = project(&rows, number, view)?;
    let (run, trace_id) = spans
        .first()
        .map_or((number, TraceId::of_run(thread, number)), |root| (root.run, root.trace_id));
    Ok(Trace { thread_id: thread, title: rows.info.title, run, trace_id, spans })
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
}

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
pub(super) fn collector(settings: &Settings) -> Option<Collector> {
    let traces = &settings.traces;
    Some(Collector {
        endpoint: traces.otlp_endpoint.clone()?,
        headers: traces.headers.clone(),
        protocol: match traces.protocol {
            TraceProtocol::Http => Protocol::Http,
            TraceProtocol::Grpc => Protocol::Grpc,
        },
        gzip: traces.compression == Compression::Gzip,
        request_timeout: traces.timeout,
    })
}

fn labels(settings: &Settings) -> Labels {
    let traces = &settings.traces;
    Labels {
        user: traces.user.clone(),
        tags: traces.tags.clone(),
        environment: traces.environment.clone(),
    }
}

/// Makes the exporter that the settings ask for.
pub(super) fn exporter(settings: &Settings) -> Result<Option<Exporter>, otlp::Error> {
    let Some(collector) = collector(settings) else { return Ok(None) };
    Exporter::new(&collector, view(settings), labels(settings)).map(Some)
}
