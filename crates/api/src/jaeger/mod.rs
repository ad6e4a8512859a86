//! The read API of Jaeger: what its UI and Grafana's data source ask a query service for.
//!
//! [`router`] has both generations: `/api/v3/…`, by which the UI of Jaeger 2 searches, and `/api/…`, by which it
//! reads a trace. Shapes are those of `jaegertracing/jaeger`: `internal/uimodel/model.go` and
//! `api_v3/query_service.proto`. There is one service, this program; nodes and agents are told apart by span
//! names and by the tags `agent_name`, `reflection_status` and `tool_usage`. Writing is absent, and so are metrics
//! and dependencies: with one service there are none.

mod duration;
mod query;
mod refusal;
mod ui;
mod v1;
mod v3;

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::http::routing::get;
use axum::Router;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use percent_encoding::percent_decode_str;

use self::refusal::Refusal;
use perihelion_telemetry::reading::Finder as TraceFinder;

/// Name of the one service, as spans are exported under it.
const SERVICE: &str = "perihelion";

/// Tells a search that stopped at its bound, in a header that Jaeger's own clients do not look at.
const INCOMPLETE: &str = "x-perihelion-incomplete";

/// Makes the routes over a finder of traces.
pub fn router(finder: TraceFinder) -> Router {
    Router::new()
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
/// What a symbolic link leads to is not served: it may lie anywhere.
pub fn interface(directory: &Path) -> Router {
    let root: Arc<Path> = directory.into();
    let serve = move |uri: Uri| async move { file(&root, uri.path()).await };
    Router::new().fallback_service(get(serve))
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

/// Returns where a file would be; `None` for a path that leaves the directory, or that leads over a link.
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
