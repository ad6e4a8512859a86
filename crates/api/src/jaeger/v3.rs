//! `/api/v3/…`: the shapes of the third generation, by which the UI of Jaeger 2 searches.

use std::collections::HashSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::IntoResponse;
use serde_json::{Value, json};

use super::refusal::Generation::V3;
use super::{INCOMPLETE, Refusal, SERVICE, query};
use crate::http::JsonResult;
use perihelion_runtime::TraceFinder;
use perihelion_telemetry::Span;

type Finder = State<Arc<TraceFinder>>;
type Asked = Query<Vec<(String, String)>>;

pub(super) async fn services() -> Json<Value> {
    Json(json!({ "services": [SERVICE] }))
}

pub(super) async fn operations(State(finder): Finder, Query(list): Asked) -> JsonResult<Refusal> {
    let asked = query::Parameters { list, generation: V3 };
    if !query::is_ours(asked.get(&["service"])) {
        return Ok(Json(json!({ "operations": [] })));
    }
    let kind = asked.get(&["spanKind", "span_kind"]);
    let operations = finder.operations().await.map_err(|error| Refusal::failed(V3, &error))?;
    let named = operations.into_iter().filter(|one| kind.is_none_or(|kind| kind == one.kind));
    let named: Vec<Value> =
        named.map(|one| json!({ "name": one.name, "spanKind": one.kind })).collect();
    Ok(Json(json!({ "operations": named })))
}

pub(super) async fn summaries(
    State(finder): Finder,
    Query(list): Asked,
) -> Result<impl IntoResponse, Refusal> {
    let (headers, traces) = search(&finder, list).await?;
    let summaries: Vec<Value> = traces.iter().map(|spans| summary(spans)).collect();
    Ok((headers, Json(json!({ "summaries": summaries }))))
}

pub(super) async fn find(
    State(finder): Finder,
    Query(list): Asked,
) -> Result<impl IntoResponse, Refusal> {
    let (headers, traces) = search(&finder, list).await?;
    if traces.is_empty() {
        return Err(Refusal::unknown(V3, "no traces found"));
    }
    let resources = traces.iter().flat_map(|spans| finder.to_otlp(spans).resource_spans);
    let resources: Vec<_> = resources.collect();
    Ok((headers, Json(json!({ "result": { "resourceSpans": resources } }))))
}

pub(super) async fn trace(State(finder): Finder, Path(id): Path<String>) -> JsonResult<Refusal> {
    let wanted = query::id(V3, &id)?;
    let found = finder.by_id(wanted).await.map_err(|error| Refusal::failed(V3, &error))?;
    let spans = found.ok_or_else(|| Refusal::unknown(V3, format!("unknown trace: {id}")))?;
    Ok(Json(json!({ "result": finder.to_otlp(&spans) })))
}

async fn search(
    finder: &TraceFinder,
    list: Vec<(String, String)>,
) -> Result<(HeaderMap, Vec<Arc<Vec<Span>>>), Refusal> {
    let mut headers = HeaderMap::new();
    let Some(query) = query::v3(list)? else { return Ok((headers, Vec::new())) };
    let found = finder.find(&query).await.map_err(|error| Refusal::failed(V3, &error))?;
    if !found.complete {
        headers.insert(INCOMPLETE, HeaderValue::from_static("true"));
    }
    Ok((headers, found.traces))
}

/// Sums a trace up for the list of results.
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
