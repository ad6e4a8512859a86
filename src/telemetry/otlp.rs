//! Spans as OTLP: sent to a collector over HTTP, or printed as JSON.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use opentelemetry::trace::{Event, Link, SpanContext, SpanKind, TraceFlags, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use prost::Message as _;
use secrecy::{ExposeSecret as _, SecretString};

use super::dialect::{self, names};
use super::{About, Span, SpanId, Status, TraceId};

/// How long one delivery may take, further attempts after 429, 502, 503 and 504 included.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(5);

/// Spans of one request; some backends refuse a whole request for one span they cannot read.
const BATCH: usize = 512;

/// Bytes of an answer that are read; a collector has little to say.
const ANSWER: usize = 64 * 1024;

/// Why spans were not delivered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the OTLP sink cannot be set up: {0}")]
    Setup(String),
    #[error("{0}; check traces.otlp_endpoint and the collector")]
    Delivery(String),
}

/// Where spans are sent.
#[derive(Clone, Debug)]
pub struct Collector {
    /// Base address of an OTLP/HTTP endpoint; `/v1/traces` is added unless it ends so.
    pub endpoint: String,
    /// Sent with each request.
    pub headers: Vec<(String, SecretString)>,
}

impl Collector {
    fn address(&self) -> String {
        let base = self.endpoint.trim_end_matches('/');
        if base.ends_with("/v1/traces") { base.to_owned() } else { format!("{base}/v1/traces") }
    }
}

/// Sends spans to one collector.
#[derive(Debug)]
pub struct Sink {
    exporter: SpanExporter,
    /// Spans that the collector took in name only.
    rejected: Arc<AtomicU64>,
}

impl Sink {
    /// Makes a sink; nothing is sent yet.
    ///
    /// # Errors
    /// [`Error::Setup`] when the address cannot be used.
    pub fn new(collector: &Collector) -> Result<Self, Error> {
        crate::config::tls::install();
        let client = reqwest::Client::builder()
            .timeout(REQUEST)
            .build()
            .map_err(|error| Error::Setup(error.to_string()))?;
        let rejected = Arc::new(AtomicU64::new(0));
        let headers: HashMap<String, String> = collector
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.expose_secret().to_owned()))
            .collect();
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Watched { client, rejected: Arc::clone(&rejected) })
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(collector.address())
            .with_timeout(PATIENCE)
            .with_headers(headers)
            .build()
            .map_err(|error| Error::Setup(error.to_string()))?;
        exporter.set_resource(&resource());
        Ok(Self { exporter, rejected })
    }

    /// Delivers a trace and returns how many of its spans the collector refused.
    ///
    /// # Errors
    /// [`Error::Delivery`] when a part of it did not arrive.
    pub async fn deliver(&self, spans: &[Span], content: bool) -> Result<u64, Error> {
        let before = self.rejected.load(Ordering::Relaxed);
        for batch in as_sent(spans).chunks(BATCH) {
            let batch = batch.iter().map(|span| data(span, content)).collect();
            let sent = self.exporter.export(batch).await;
            sent.map_err(|error| Error::Delivery(error.to_string()))?;
        }
        Ok(self.rejected.load(Ordering::Relaxed) - before)
    }
}

/// Counts what a collector says it refused, which the exporter itself only logs.
#[derive(Debug)]
struct Watched {
    client: reqwest::Client,
    rejected: Arc<AtomicU64>,
}

#[async_trait]
impl HttpClient for Watched {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let mut answer = self.client.execute(request.try_into()?).await?;
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await? {
            body.extend_from_slice(&piece);
            if body.len() > ANSWER {
                break;
            }
        }
        if answer.status().is_success()
            && let Ok(ExportTraceServiceResponse { partial_success: Some(partial) }) =
                ExportTraceServiceResponse::decode(&body[..])
        {
            let refused = u64::try_from(partial.rejected_spans).unwrap_or_default();
            self.rejected.fetch_add(refused, Ordering::Relaxed);
        }
        let mut response = Response::builder().status(answer.status());
        if let Some(headers) = response.headers_mut() {
            *headers = std::mem::take(answer.headers_mut());
        }
        Ok(response.body(Bytes::from(body))?)
    }
}

/// Writes a trace as the JSON form of an OTLP request.
///
/// # Errors
/// When a value has no JSON form; none of ours has that.
pub fn to_json(spans: &[Span], content: bool) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&to_request(spans, content))
}

/// Writes a trace as an OTLP request.
pub fn to_request(spans: &[Span], content: bool) -> ExportTraceServiceRequest {
    let spans = as_sent(spans).iter().map(|span| data(span, content)).collect();
    let resource_spans = group_spans_by_resource_and_scope(spans, &(&resource()).into());
    ExportTraceServiceRequest { resource_spans }
}

fn resource() -> Resource {
    let own = [
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new(names::OI_PROJECT, env!("CARGO_PKG_NAME")),
    ];
    Resource::builder().with_service_name(env!("CARGO_PKG_NAME")).with_attributes(own).build()
}

/// Gives spans that may still change ids of their own, children in tow.
///
/// Some backends keep the first version of a span, some the last, so the final id is kept for the final
/// version; what is sent after a failed run is a whole tree all the same.
fn as_sent(spans: &[Span]) -> Vec<Span> {
    let newest = spans.iter().find_map(|span| match &span.about {
        About::Workflow { runs, .. } => runs.last().map(|run| run.number),
        _ => None,
    });
    let run = newest.unwrap_or_default();
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
        start_time: moment(span.start),
        end_time: moment(span.end),
        attributes: dialect::attributes(span, content),
        dropped_attributes_count: 0,
        events,
        links,
        status: match &span.status {
            Status::Unset => opentelemetry::trace::Status::Unset,
            Status::Ok => opentelemetry::trace::Status::Ok,
            Status::Error { message } => opentelemetry::trace::Status::error(message.clone()),
        },
        instrumentation_scope: InstrumentationScope::builder(env!("CARGO_PKG_NAME"))
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    }
}

fn moment(at: DateTime<Utc>) -> std::time::SystemTime {
    at.into()
}

fn wire(id: SpanId) -> opentelemetry::SpanId {
    opentelemetry::SpanId::from_bytes(id.to_bytes())
}

fn context(trace: TraceId, span: SpanId) -> SpanContext {
    let trace = opentelemetry::TraceId::from_bytes(trace.to_bytes());
    SpanContext::new(trace, wire(span), TraceFlags::SAMPLED, false, TraceState::default())
}
