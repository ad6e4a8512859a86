//! Jaeger's read API: the requests of its UI and of Grafana's data source to a query service.
//!
//! [`router`] has both generations: `/api/v3/…`, by which the UI of Jaeger 2 searches, and `/api/…`, by which it reads
//! a trace. Shapes are those of `jaegertracing/jaeger`: `internal/uimodel/model.go` and `api_v3/query_service.proto`.
//! There is one service, this program; nodes and agents differ in span names and the tags `agent_name`,
//! `reflection_status` and `tool_usage`. Writing is absent, and so are metrics and dependencies, which need several
//! services.

mod query;
mod ui;
mod v1;
mod v3;

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use axum::extract::{self, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use self::query::Parameters;
use crate::http::routing::{Routes, get};
use perihelion_telemetry as telemetry;
use perihelion_telemetry::Span;
use perihelion_telemetry::reading::{Finder as TraceFinder, Query};

/// Name of the one service, as spans are exported under it.
const SERVICE: &str = "perihelion";

#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    message: String,
    generation: Generation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generation {
    V1,
    V3,
}

impl Refusal {
    fn malformed(generation: Generation, name: &str, value: &str, wanted: &str) -> Self {
        let message = format!("malformed parameter {name}, expected {wanted}: {value}");
        Self { status: StatusCode::BAD_REQUEST, message, generation }
    }

    fn unknown(generation: Generation, message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, message: message.into(), generation }
    }

    /// Makes one from a failure of the store, and logs it.
    fn failed(generation: Generation, error: &telemetry::Error) -> Self {
        tracing::warn!(%error, "failed to read traces");
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self { status, message: error.to_string(), generation }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let code = self.status.as_u16();
        let body = match self.generation {
            Generation::V1 => json!({
                "data": null, "total": 0, "limit": 0, "offset": 0,
                "errors": [{ "code": code, "msg": self.message }],
            }),
            Generation::V3 => json!({ "error": { "httpCode": code, "message": self.message } }),
        };
        (self.status, Json(body)).into_response()
    }
}

/// Marks a search that stopped at its limit, in a header that Jaeger's own clients ignore.
const INCOMPLETE: &str = "x-perihelion-incomplete";

type Finder = State<Arc<TraceFinder>>;

/// The parameters of a request, of which some are repeated.
type Asked = extract::Query<Vec<(String, String)>>;

pub fn router(finder: TraceFinder) -> Router {
    Routes::new()
        .route("/api/services", get(v1::services))
        .route("/api/services/{service}/operations", get(v1::operations_of))
        .route("/api/operations", get(v1::operations))
        .route("/api/dependencies", get(v1::dependencies))
        .route("/api/traces", get(v1::find))
        .route("/api/traces/{id}", get(v1::trace))
        .route("/api/v3/services", get(v3::services))
        .route("/api/v3/operations", get(v3::operations))
        .route("/api/v3/trace-summaries", get(v3::summaries))
        .route("/api/v3/traces", get(v3::find))
        .route("/api/v3/traces/{id}", get(v3::trace))
        .route("/api/{*unknown}", get(v1::unknown))
        .with_state(Arc::new(finder))
}

/// Serves a build of the Jaeger UI from a directory; its addresses that are no files are pages of it.
///
/// Symbolic links are not followed, because their targets can be anywhere.
pub fn interface(directory: &Path) -> Router {
    let root: Arc<Path> = directory.into();
    let serve = move |uri: Uri| async move { file(&root, uri.path()).await };
    Router::new().fallback_service(axum::routing::get(serve))
}

async fn file(root: &Path, path: &str) -> Response {
    let Some(found) = place(root, path) else { return StatusCode::NOT_FOUND.into_response() };
    let found = if found.is_file() { found } else { root.join("index.html") };
    let kind = crate::page::kind(&found.to_string_lossy());
    match tokio::fs::read(&found).await {
        Ok(content) => ([(header::CONTENT_TYPE, kind)], content).into_response(),
        Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Returns the path of a file; `None` for a path outside of the directory, or through a link.
fn place(root: &Path, path: &str) -> Option<PathBuf> {
    let path = percent_decode_str(path).decode_utf8().ok()?;
    let mut place = root.to_owned();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let mut names = Path::new(part).components();
        let is_name = matches!(names.next(), Some(Component::Normal(name)) if name == part);
        place.push(part);
        let is_link = std::fs::symlink_metadata(&place).is_ok_and(|found| found.is_symlink());
        if !is_name || is_link {
            return None;
        }
    }
    Some(place)
}

/// Lists the operations of a kind, for both generations; empty for an unknown service.
async fn operations(
    finder: &TraceFinder,
    asked: &Parameters,
    kinds: &[&str],
) -> Result<Vec<Value>, Refusal> {
    if !query::is_ours(asked.get(&["service"])) {
        return Ok(Vec::new());
    }
    let kind = asked.get(kinds);
    let operations = finder.operations().await;
    let operations = operations.map_err(|error| Refusal::failed(asked.generation, &error))?;
    let named = operations.into_iter().filter(|one| kind.is_none_or(|kind| kind == one.kind));
    Ok(named.map(|one| json!({ "name": one.name, "spanKind": one.kind })).collect())
}

/// Searches, and marks in the headers if it stopped at its limit; without a query the result is empty.
async fn search(
    finder: &TraceFinder,
    query: Option<Query>,
    generation: Generation,
) -> Result<(HeaderMap, Vec<Arc<Vec<Span>>>), Refusal> {
    let mut headers = HeaderMap::new();
    let Some(query) = query else { return Ok((headers, Vec::new())) };
    let found = finder.find(&query).await.map_err(|error| Refusal::failed(generation, &error))?;
    if !found.complete {
        headers.insert(INCOMPLETE, HeaderValue::from_static("true"));
    }
    Ok((headers, found.traces))
}

async fn by_id(
    finder: &TraceFinder,
    id: &str,
    generation: Generation,
) -> Result<Arc<Vec<Span>>, Refusal> {
    let found = finder.by_id(query::id(generation, id)?).await;
    let found = found.map_err(|error| Refusal::failed(generation, &error))?;
    found.ok_or_else(|| Refusal::unknown(generation, format!("unknown trace: {id}")))
}
