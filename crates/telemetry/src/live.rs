//! Live `tracing` spans that carry the ids of the spans that will be projected, so that logs name them.
//!
//! They are not exported: they contain no data and end with their process. They provide a context: every log line of a
//! run, from any library, can name its trace and span.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use opentelemetry::Context;
use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, Sampler, SdkTracerProvider};
use tracing::{Metadata, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use super::span_builder::{task_kind, trace_id};
use super::{Parents, SpanId, TraceId};
use perihelion_engine::graph::NodeLocation;
use perihelion_engine::ids::{RunId, ThreadId};
use perihelion_engine::runner::Spans;
use perihelion_star::{GRAPH, span_kind};

/// The target of the spans made here; no event has it.
const TARGET: &str = "perihelion::live";

/// Whether there is a reader of the context; without one, it is not computed.
static WANTED: AtomicBool = AtomicBool::new(false);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPlace {
    pub trace_id: String,
    pub span_id: String,
    pub thread: ThreadId,
    pub run: u32,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    thread: ThreadId,
    number: u32,
    trace: TraceId,
    /// Number of the first run in the trace.
    first: u32,
}

thread_local! {
    /// The ids of the span that is made next on this thread.
    static NEXT: Cell<Option<(TraceId, SpanId)>> = const { Cell::new(None) };
}

#[derive(Debug, Default)]
struct Derived(RandomIdGenerator);

impl IdGenerator for Derived {
    fn new_trace_id(&self) -> opentelemetry::TraceId {
        match NEXT.get() {
            Some((trace, _)) => opentelemetry::TraceId::from_bytes(trace.to_bytes()),
            None => self.0.new_trace_id(),
        }
    }

    fn new_span_id(&self) -> opentelemetry::SpanId {
        match NEXT.get() {
            Some((_, span)) => opentelemetry::SpanId::from_bytes(span.to_bytes()),
            None => self.0.new_span_id(),
        }
    }
}

/// Makes the layer that provides [`place`]; install it below the layers that write logs.
pub fn layer<S>() -> impl Layer<S> + Send + Sync
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    WANTED.store(true, Ordering::Relaxed);
    // Nothing is sampled, so nothing is recorded: ids are all that is wanted.
    let provider = SdkTracerProvider::builder()
        .with_id_generator(Derived::default())
        .with_sampler(Sampler::AlwaysOff)
        .build();
    let ours = |metadata: &Metadata<'_>| metadata.is_span() && metadata.target() == TARGET;
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(crate::PROGRAM))
        .with_filter(filter_fn(ours).with_max_level_hint(tracing::Level::INFO))
}

/// Returns the context of the caller; `None` outside of runs, and without [`layer`].
pub fn place() -> Option<LogPlace> {
    let context = Context::current();
    let run = context.get::<Run>()?;
    let span = context.span().span_context().span_id();
    let trace_id = run.trace.to_string();
    let span_id = span.to_string();
    Some(LogPlace { trace_id, span_id, thread: run.thread, run: run.number })
}

pub struct LiveSpans {
    parents: Arc<Parents>,
}

impl LiveSpans {
    pub fn new(parents: Arc<Parents>) -> Self {
        Self { parents }
    }
}

#[async_trait]
impl Spans for LiveSpans {
    async fn run(&self, thread: ThreadId, run: RunId) -> Span {
        if !WANTED.load(Ordering::Relaxed) {
            return Span::none();
        }
        let Some((first, number)) = self.parents.run(thread, run).await else {
            return Span::none();
        };
        let trace = trace_id(thread, first, self.parents.scope());
        let place = Run { thread, number, trace, first };
        let span = tracing::info_span!(target: TARGET, parent: None, "run");
        derived(&span, place, SpanId::root(thread, first), Context::new().with_value(place));
        span
    }

    fn task(&self, place: &NodeLocation) -> Span {
        if !WANTED.load(Ordering::Relaxed) {
            return Span::none();
        }
        let outer = Context::current();
        let Some(run) = outer.get::<Run>().copied() else { return Span::none() };
        // Stages of pipelines run below the span of their agent's task.
        let kind = task_kind(span_kind(GRAPH, &place.node));
        let id = SpanId::at(place.thread, run.first, place.step, place.task, kind, "");
        let span = tracing::info_span!(target: TARGET, "task");
        derived(&span, run, id, outer);
        span
    }
}

fn derived(span: &Span, run: Run, id: SpanId, within: Context) {
    if let Err(error) = span.set_parent(within) {
        tracing::debug!(%error, "a span of the logs has no place");
        return;
    }
    NEXT.set(Some((run.trace, id)));
    // The ids are drawn when the span is first asked for.
    span.context();
    NEXT.set(None);
}
