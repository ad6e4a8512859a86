//! `/api/v3/…`: the shapes of the third generation, by which the UI of Jaeger 2 searches.

use std::collections::HashSet;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use serde_json::{Value, json};

use super::Generation::V3;
use super::{Asked, Finder, Refusal, SERVICE, by_id, query, search};
use crate::http::JsonResult;
use perihelion_telemetry::Span;

pub(super) async fn services() -> Json<Value> {
    Json(json!({ "services": [SERVICE] }))
}

pub(super) async fn operations(State(finder): Finder, Query(list): Asked) -> JsonResult<Refusal> {
    let asked = query::Parameters { list, generation: V3 };
    let named = super::operations(&finder, &asked, &["spanKind", "span_kind"]).await?;
    Ok(Json(json!({ "operations": named })))
}

pub(super) async fn summaries(
    State(finder): Finder,
    Query(list): Asked,
) -> Result<impl IntoResponse, Refusal> {
    let (headers, traces) = search(&finder, query::v3(list)?, V3).await?;
    let summaries: Vec<Value> = traces.iter().map(|spans| summary(spans)).collect();
    Ok((headers, Json(json!({ "summaries": summaries }))))
}

pub(super) async fn find(finder: Finder, Query(list): Asked) -> Result<impl IntoResponse, Refusal> {
    let (headers, traces) = search(&finder, query::v3(list)?, V3).await?;
    if traces.is_empty() {
        return Err(Refusal::unknown(V3, "no traces found"));
    }
    let resources = traces.iter().flat_map(|spans| finder.to_otlp(spans).resource_spans);
    let resources: Vec<_> = resources.collect();
    Ok((headers, Json(json!({ "result": { "resourceSpans": resources } }))))
}

pub(super) async fn trace(State(finder): Finder, Path(id): Path<String>) -> JsonResult<Refusal> {
    let spans = by_id(&finder, &id, V3).await?;
    Ok(Json(json!({ "result": finder.to_otlp(&spans) })))
}

fn summary(spans: &[Span]) -> Value {
    let ids: HashSet<_> = spans.iter().map(|span| span.span_id).collect();
    let is_orphan = |span: &&Span| span.parent.is_some_and(|parent| !ids.contains(&parent));
    let failed = spans.iter().filter(|span| span.failed()).count();
    let nanos = |moment: Option<chrono::DateTime<chrono::Utc>>| {
        moment.and_then(|moment| moment.timestamp_nanos_opt()).unwrap_or_default().to_string()
    };
    let root = spans.first();
    json!({
        "traceId": root.map(|root| root.trace_id.to_string()),
        "rootServiceName": SERVICE,
        "rootOperationName": root.map(|root| root.name.as_str()),
        "minStartTimeUnixNano": nanos(spans.iter().map(|span| span.start).min()),
        "maxEndTimeUnixNano": nanos(spans.iter().map(|span| span.end).max()),
        "spanCount": spans.len(),
        "errorSpanCount": failed,
        "orphanSpanCount": spans.iter().filter(is_orphan).count(),
        "services": [{ "name": SERVICE, "spanCount": spans.len(), "errorSpanCount": failed }],
    })
}
