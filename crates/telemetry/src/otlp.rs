//! Spans as OTLP: sent to a collector over HTTP or gRPC, or printed as JSON.
//!
//! The requests are built here and not by the SDK's exporters, which do not report the collector's refusals and
//! reasons, and cannot divide a request that is rejected because of one span.

use std::collections::HashMap;

use opentelemetry::trace::{Event, Link, SpanContext, SpanKind, TraceFlags, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::resource::v1::Resource as WireResource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as WireSpan};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use prost::Message as _;

use super::dialect::{self, names};
use super::span::last_run;
use super::wire::{Refusal, RefusalKind, Wire};
use super::{About, Span, SpanId, Status, TraceId};
use perihelion_settings::config::Collector;

/// Spans of one request.
const BATCH: usize = 512;

/// Bytes of the spans of one request; gRPC servers refuse messages of more than 4 MiB by default.
const BATCH_BYTES: usize = 2 * 1024 * 1024;

/// Requests that one delivery may lose to the search for the spans that a collector cannot read.
const SEARCH: usize = 64;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot set up OTLP export: {0}")]
    Setup(#[source] perihelion_engine::checkpoint::Cause),
    #[error("{0}; check traces.otlp_endpoint and the collector")]
    Delivery(String),
    /// The collector rejects a part of this trace; it may take others.
    #[error("{0}; check traces.otlp_endpoint and the collector")]
    Rejected(String),
    /// The collector can read no span of this trace.
    #[error("{0}; check traces.otlp_endpoint and the collector")]
    Unreadable(String),
}

#[derive(Debug)]
pub struct Sink {
    wire: Wire,
}

impl Sink {
    /// Makes a sink within a Tokio runtime, without sending.
    ///
    /// # Errors
    /// [`Error::Setup`] when the address cannot be used.
    pub fn new(collector: &Collector) -> Result<Self, Error> {
        let wire = Wire::new::<ExportTraceServiceRequest>(collector);
        Ok(Self { wire: wire.map_err(Error::Setup)? })
    }

    /// Delivers a trace and returns how many of its spans the collector refused.
    ///
    /// Temporary failures are retried for about ten seconds. A request that the collector cannot read or finds too
    /// large is divided, so that one bad span costs itself and no other.
    ///
    /// # Errors
    /// [`Error::Delivery`] and [`Error::Rejected`] when a part of it did not arrive, [`Error::Unreadable`] when no span of
    /// it was read.
    pub async fn deliver(&self, spans: &[Span], content: bool) -> Result<u64, Error> {
        let wire_spans = wire_spans(spans, content);
        let mut rejected = 0_u64;
        let mut refusals = 0;
        let mut why = String::new();
        let mut waiting = batches(wire_spans);
        waiting.reverse();
        while let Some(batch) = waiting.pop() {
            match self.wire.send_with_patience(&request(batch.clone())).await {
                Ok(refused) => rejected += refused,
                Err(Refusal { kind: RefusalKind::Unreadable, reason }) => {
                    (refusals, why) = (refusals + 1, reason);
                    if batch.len() == 1 || refusals >= SEARCH {
                        rejected += batch.len() as u64;
                        continue;
                    }
                    let mut first = batch;
                    let second = first.split_off(first.len() / 2);
                    waiting.extend([second, first]);
                }
                Err(Refusal { kind: RefusalKind::Rejected, reason }) => {
                    return Err(Error::Rejected(reason));
                }
                Err(refusal) => return Err(Error::Delivery(refusal.reason)),
            }
        }
        if rejected >= spans.len() as u64 && !why.is_empty() {
            return Err(Error::Unreadable(why));
        }
        Ok(rejected)
    }

    /// Sends a request without spans, to see whether the collector takes any.
    ///
    /// It still names its sender, because some backends cannot read an empty request.
    pub async fn check(&self) -> Result<(), Error> {
        let sent = self.wire.send(&request(Vec::new())).await;
        sent.map(drop).map_err(|refusal| Error::Delivery(refusal.reason))
    }
}

fn batches(spans: Vec<WireSpan>) -> Vec<Vec<WireSpan>> {
    let mut batches: Vec<Vec<WireSpan>> = Vec::new();
    let mut bytes = 0;
    for span in spans {
        let size = span.encoded_len();
        match batches.last_mut() {
            Some(batch) if batch.len() < BATCH && bytes + size <= BATCH_BYTES => {
                batch.push(span);
                bytes += size;
            }
            _ => {
                batches.push(vec![span]);
                bytes = size;
            }
        }
    }
    batches
}

fn wire_spans(spans: &[Span], content: bool) -> Vec<WireSpan> {
    let labels = dialect::labels(spans.first());
    let wired = |span: &Span| {
        let mut data = data(span, content);
        data.attributes.extend(labels.iter().cloned());
        data.into()
    };
    as_sent(spans).iter().map(wired).collect()
}

/// Names the sender of a request.
pub(super) fn sender() -> WireResource {
    let attributes = ResourceAttributesWithSchema::from(&resource()).attributes.0;
    WireResource { attributes, ..Default::default() }
}

fn request(spans: Vec<WireSpan>) -> ExportTraceServiceRequest {
    let scope = scope();
    let scope_spans =
        vec![ScopeSpans { scope: Some((&scope, None).into()), spans, schema_url: String::new() }];
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(sender()),
            scope_spans,
            schema_url: String::new(),
        }],
    }
}

/// Writes a trace as the JSON form of an OTLP request.
pub fn to_json(spans: &[Span], content: bool) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&to_request(spans, content))
}

pub fn to_request(spans: &[Span], content: bool) -> ExportTraceServiceRequest {
    request(wire_spans(spans, content))
}

fn scope() -> InstrumentationScope {
    InstrumentationScope::builder(crate::PROGRAM).with_version(env!("CARGO_PKG_VERSION")).build()
}

/// Describes the sender: this program, with the attributes of `OTEL_RESOURCE_ATTRIBUTES`.
pub(super) fn resource() -> Resource {
    let own = [
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new(names::OI_PROJECT, crate::PROGRAM),
    ];
    Resource::builder().with_service_name(crate::PROGRAM).with_attributes(own).build()
}

/// Gives spans that can still change temporary IDs, and adapts their children.
///
/// Some backends keep the first version of a span, some the last one, so only the final version has the final ID; the
/// spans of a failed run are still a complete tree.
fn as_sent(spans: &[Span]) -> Vec<Span> {
    let run = last_run(spans).map(|run| run.number).unwrap_or_default();
    let open: HashMap<SpanId, SpanId> = spans
        .iter()
        .filter(|span| span.open)
        .map(|span| (span.span_id, span.span_id.provisional(run)))
        .collect();
    let sent = |id: SpanId| open.get(&id).copied().unwrap_or(id);
    let mut spans = spans.to_vec();
    for span in &mut spans {
        span.span_id = sent(span.span_id);
        span.parent = span.parent.map(sent);
        for link in &mut span.links {
            link.span_id = sent(link.span_id);
        }
    }
    spans
}

fn data(span: &Span, content: bool) -> SpanData {
    let mut events = SpanEvents::default();
    for (name, at, attributes) in dialect::events(span, content) {
        events.events.push(Event::new(name, at.into(), attributes, 0));
    }
    let mut links = SpanLinks::default();
    for link in &span.links {
        let kind = KeyValue::new(names::LINK_KIND, link.kind);
        links.links.push(Link::new(context(link.trace_id, link.span_id), vec![kind], 0));
    }
    SpanData {
        span_context: context(span.trace_id, span.span_id),
        parent_span_id: span.parent.map_or(opentelemetry::SpanId::INVALID, wire),
        parent_span_is_remote: false,
        span_kind: match span.about {
            About::Chat { .. } | About::Tool { .. } => SpanKind::Client,
            _ => SpanKind::Internal,
        },
        name: span.name.clone().into(),
        start_time: span.start.into(),
        end_time: span.end.into(),
        attributes: dialect::attributes(span, content),
        dropped_attributes_count: 0,
        events,
        links,
        status: match &span.status {
            Status::Unset => opentelemetry::trace::Status::Unset,
            Status::Ok => opentelemetry::trace::Status::Ok,
            Status::Error { message } => opentelemetry::trace::Status::error(message.clone()),
        },
        instrumentation_scope: scope(),
    }
}

fn wire(id: SpanId) -> opentelemetry::SpanId {
    opentelemetry::SpanId::from_bytes(id.to_bytes())
}

fn context(trace: TraceId, span: SpanId) -> SpanContext {
    let trace = opentelemetry::TraceId::from_bytes(trace.to_bytes());
    SpanContext::new(trace, wire(span), TraceFlags::SAMPLED, false, TraceState::default())
}
