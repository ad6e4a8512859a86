//! `/api/…`: the shapes of the first generation, by which the UI reads a trace and Grafana searches.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use serde::Serialize;
use serde_json::{Value, json};

use super::Generation::V1;
use super::{Asked, Finder, Refusal, SERVICE, by_id, query, search, ui};
use crate::http::JsonResult;

/// Wraps a list as every answer of this generation is.
fn structured<T: Serialize>(data: Vec<T>) -> Json<Value> {
    let total = data.len();
    Json(json!({ "data": data, "total": total, "limit": 0, "offset": 0, "errors": null }))
}

pub(super) async fn services() -> Json<Value> {
    structured(vec![SERVICE])
}

pub(super) async fn operations_of(
    State(finder): Finder,
    Path(service): Path<String>,
) -> JsonResult<Refusal> {
    if !query::is_ours(Some(&service)) {
        return Ok(structured(Vec::<String>::new()));
    }
    let operations = finder.operations().await.map_err(|error| Refusal::failed(V1, &error))?;
    // Twice where calls and inner work have the same name.
    let mut names: Vec<String> = operations.into_iter().map(|one| one.name).collect();
    names.dedup();
    Ok(structured(names))
}

pub(super) async fn operations(State(finder): Finder, Query(list): Asked) -> JsonResult<Refusal> {
    let asked = query::Parameters { list, generation: V1 };
    Ok(structured(super::operations(&finder, &asked, &["spanKind"]).await?))
}

/// Calls between services, of which there are none with one service.
pub(super) async fn dependencies() -> Json<Value> {
    structured(Vec::<String>::new())
}

pub(super) async fn find(finder: Finder, Query(list): Asked) -> Result<impl IntoResponse, Refusal> {
    let ids = query::ids(&list)?;
    let query = if ids.is_empty() { query::v1(list)? } else { None };
    let (headers, mut traces) = search(&finder, query, V1).await?;
    for id in ids {
        let found = finder.by_id(id).await.map_err(|error| Refusal::failed(V1, &error))?;
        traces.extend(found);
    }
    let shown = traces.iter().map(|spans| ui::trace(&finder.to_otlp(spans))).collect();
    Ok((headers, structured(shown)))
}

pub(super) async fn trace(State(finder): Finder, Path(id): Path<String>) -> JsonResult<Refusal> {
    let spans = by_id(&finder, &id, V1).await?;
    Ok(structured(vec![ui::trace(&finder.to_otlp(&spans))]))
}

/// Answers a request for a missing feature in a form that the UI can show.
pub(super) async fn unknown(Path(path): Path<String>) -> Refusal {
    Refusal::unknown(V1, format!("not supported: /api/{path}"))
}
