//! A trace in the shape that the Jaeger UI draws.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};
use serde::Serialize;
use serde_json::json;

/// The largest whole number that JavaScript counts exactly; larger ones are sent as text.
const EXACT: i64 = (1 << 53) - 1;

/// A trace: `uimodel.Trace`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Trace {
    #[serde(rename = "traceID")]
    trace_id: String,
    spans: Vec<UiSpan>,
    processes: serde_json::Map<String, serde_json::Value>,
    warnings: Option<Vec<String>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct UiSpan {
    #[serde(rename = "traceID")]
    trace_id: String,
    #[serde(rename = "spanID")]
    span_id: String,
    operation_name: String,
    references: Vec<Reference>,
    /// Microseconds since 1970.
    start_time: u64,
    /// Microseconds.
    duration: u64,
    tags: Vec<Tag>,
    logs: Vec<Log>,
    #[serde(rename = "processID")]
    process_id: String,
    warnings: Option<Vec<String>>,
}

#[derive(Debug, Serialize)]
struct Reference {
    #[serde(rename = "refType")]
    kind: &'static str,
    #[serde(rename = "traceID")]
    trace_id: String,
    #[serde(rename = "spanID")]
    span_id: String,
}

#[derive(Debug, Serialize)]
struct Tag {
    key: String,
    #[serde(rename = "type")]
    kind: &'static str,
    value: serde_json::Value,
}

#[derive(Debug, Serialize)]
struct Log {
    timestamp: u64,
    fields: Vec<Tag>,
}

/// Converts a trace as it is exported.
pub(super) fn trace(request: &ExportTraceServiceRequest) -> Trace {
    let mut trace = Trace::default();
    for (index, resource) in request.resource_spans.iter().enumerate() {
        let process = format!("p{}", index + 1);
        let attributes = resource.resource.as_ref().map(|one| one.attributes.as_slice());
        let mut tags: Vec<Tag> = attributes.unwrap_or_default().iter().map(tag).collect();
        let at = tags.iter().position(|tag| tag.key == "service.name");
        let service = at.map(|at| tags.remove(at).value).unwrap_or_default();
        trace.processes.insert(process.clone(), json!({ "serviceName": service, "tags": tags }));
        for scope in &resource.scope_spans {
            let name = scope.scope.as_ref().map(|scope| scope.name.as_str()).unwrap_or_default();
            trace.spans.extend(scope.spans.iter().map(|one| span(one, name, &process)));
        }
    }
    trace.trace_id = trace.spans.first().map(|span| span.trace_id.clone()).unwrap_or_default();
    trace
}

fn span(span: &Span, scope: &str, process: &str) -> UiSpan {
    let mut references = Vec::new();
    if !span.parent_span_id.is_empty() {
        references.push(reference("CHILD_OF", &span.trace_id, &span.parent_span_id));
    }
    references.extend(
        span.links.iter().map(|link| reference("FOLLOWS_FROM", &link.trace_id, &link.span_id)),
    );
    let mut tags: Vec<Tag> = span.attributes.iter().map(tag).collect();
    let kind = match span.kind() {
        SpanKind::Client => "client",
        SpanKind::Server => "server",
        SpanKind::Producer => "producer",
        SpanKind::Consumer => "consumer",
        SpanKind::Internal | SpanKind::Unspecified => "internal",
    };
    tags.push(text("span.kind", kind));
    tags.push(text("otel.scope.name", scope));
    let status = span.status.as_ref();
    match status.map(|status| status.code()) {
        Some(StatusCode::Error) => {
            tags.push(Tag { key: "error".into(), kind: "bool", value: true.into() });
            tags.push(text("otel.status_code", "ERROR"));
            let message = status.map(|status| status.message.as_str()).unwrap_or_default();
            tags.push(text("otel.status_description", message));
        }
        Some(StatusCode::Ok) => tags.push(text("otel.status_code", "OK")),
        Some(StatusCode::Unset) | None => {}
    }
    let is_open = tags.iter().any(|tag| tag.key == "perihelion.open");
    UiSpan {
        trace_id: hex(&span.trace_id),
        span_id: hex(&span.span_id),
        operation_name: span.name.clone(),
        references,
        start_time: span.start_time_unix_nano / 1_000,
        duration: span.end_time_unix_nano.saturating_sub(span.start_time_unix_nano) / 1_000,
        tags,
        logs: span
            .events
            .iter()
            .map(|event| Log {
                timestamp: event.time_unix_nano / 1_000,
                fields: [text("event", &event.name)]
                    .into_iter()
                    .chain(event.attributes.iter().map(tag))
                    .collect(),
            })
            .collect(),
        process_id: process.to_owned(),
        warnings: is_open
            .then(|| vec!["still running: its end is the latest known time".to_owned()]),
    }
}

fn reference(kind: &'static str, trace: &[u8], span: &[u8]) -> Reference {
    Reference { kind, trace_id: hex(trace), span_id: hex(span) }
}

fn text(key: &str, value: &str) -> Tag {
    Tag { key: key.to_owned(), kind: "string", value: value.into() }
}

fn tag(pair: &KeyValue) -> Tag {
    let (kind, value) = match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::BoolValue(value)) => ("bool", json!(value)),
        Some(Value::IntValue(value)) if (-EXACT..=EXACT).contains(value) => ("int64", json!(value)),
        Some(Value::IntValue(value)) => ("int64", json!(value.to_string())),
        Some(Value::DoubleValue(value)) => ("float64", json!(value)),
        other => ("string", json!(other.map(plain).unwrap_or_default())),
    };
    Tag { key: pair.key.clone(), kind, value }
}

/// Writes a value as text: lists as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::StringValue(text) => text.clone(),
        Value::ArrayValue(list) => {
            let of = |one: &AnyValue| one.value.as_ref().map(plain).unwrap_or_default();
            json!(list.values.iter().map(of).collect::<Vec<_>>()).to_string()
        }
        Value::BoolValue(value) => value.to_string(),
        Value::IntValue(value) => value.to_string(),
        Value::DoubleValue(value) => value.to_string(),
        _ => String::new(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
