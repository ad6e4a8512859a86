//! A trace in the shape that the Jaeger UI draws.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};
use serde_json::{Value as Json, json};

/// The largest whole number that JavaScript counts exactly; larger ones are sent as text.
const EXACT: i64 = (1 << 53) - 1;

pub(super) fn trace(request: &ExportTraceServiceRequest) -> Json {
    let mut processes = serde_json::Map::new();
    let mut spans: Vec<Json> = Vec::new();
    for (index, resource) in request.resource_spans.iter().enumerate() {
        let process = format!("p{}", index + 1);
        let attributes = resource.resource.as_ref().map(|one| one.attributes.as_slice());
        let mut tags: Vec<Json> = attributes.unwrap_or_default().iter().map(tag).collect();
        let at = tags.iter().position(|tag| tag["key"] == "service.name");
        let service = at.map(|at| tags.remove(at)["value"].take()).unwrap_or_default();
        processes.insert(process.clone(), json!({ "serviceName": service, "tags": tags }));
        for scope in &resource.scope_spans {
            let name = scope.scope.as_ref().map(|scope| scope.name.as_str()).unwrap_or_default();
            spans.extend(scope.spans.iter().map(|one| span(one, name, &process)));
        }
    }
    let id = spans.first().map_or_else(|| json!(""), |span| span["traceID"].clone());
    json!({ "traceID": id, "spans": spans, "processes": processes, "warnings": null })
}

/// Shows a span; its times are microseconds.
fn span(span: &Span, scope: &str, process: &str) -> Json {
    let parent = (!span.parent_span_id.is_empty())
        .then(|| reference("CHILD_OF", &span.trace_id, &span.parent_span_id));
    let links =
        span.links.iter().map(|link| reference("FOLLOWS_FROM", &link.trace_id, &link.span_id));
    let references: Vec<Json> = parent.into_iter().chain(links).collect();
    let mut tags: Vec<Json> = span.attributes.iter().map(tag).collect();
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
            tags.push(json!({ "key": "error", "type": "bool", "value": true }));
            tags.push(text("otel.status_code", "ERROR"));
            let message = status.map(|status| status.message.as_str()).unwrap_or_default();
            tags.push(text("otel.status_description", message));
        }
        Some(StatusCode::Ok) => tags.push(text("otel.status_code", "OK")),
        Some(StatusCode::Unset) | None => {}
    }
    let is_open = tags.iter().any(|tag| tag["key"] == "perihelion.open");
    let logs = span.events.iter().map(|event| {
        let mut fields = vec![text("event", &event.name)];
        fields.extend(event.attributes.iter().map(tag));
        json!({ "timestamp": event.time_unix_nano / 1_000, "fields": fields })
    });
    json!({
        "traceID": hex(&span.trace_id),
        "spanID": hex(&span.span_id),
        "operationName": span.name,
        "references": references,
        "startTime": span.start_time_unix_nano / 1_000,
        "duration": span.end_time_unix_nano.saturating_sub(span.start_time_unix_nano) / 1_000,
        "tags": tags,
        "logs": logs.collect::<Vec<_>>(),
        "processID": process,
        "warnings": is_open.then_some(["still running: its end is the latest known time"]),
    })
}

fn reference(kind: &str, trace: &[u8], span: &[u8]) -> Json {
    json!({ "refType": kind, "traceID": hex(trace), "spanID": hex(span) })
}

fn text(key: &str, value: &str) -> Json {
    json!({ "key": key, "type": "string", "value": value })
}

fn tag(pair: &KeyValue) -> Json {
    let (kind, value) = match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::BoolValue(value)) => ("bool", json!(value)),
        Some(Value::IntValue(value)) if (-EXACT..=EXACT).contains(value) => ("int64", json!(value)),
        Some(Value::IntValue(value)) => ("int64", json!(value.to_string())),
        Some(Value::DoubleValue(value)) => ("float64", json!(value)),
        other => ("string", json!(other.map(plain).unwrap_or_default())),
    };
    json!({ "key": pair.key, "type": kind, "value": value })
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
