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

use std::path::Path;
use std::sync::Arc;

use crate::http::routing::get;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::IntoResponse as _;
use percent_encoding::percent_decode_str;
use tower_http::services::{ServeDir, ServeFile};

use self::refusal::Refusal;
use perihelion_runtime::TraceFinder;

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
    let files = ServeDir::new(directory).fallback(ServeFile::new(directory.join("index.html")));
    let root: Arc<Path> = directory.into();
    Router::new().fallback_service(files).layer(middleware::from_fn(
        move |request: Request, next: Next| {
            let root = Arc::clone(&root);
            async move {
                if leads_over_a_link(&root, request.uri().path()) {
                    StatusCode::NOT_FOUND.into_response()
                } else {
                    next.run(request).await
                }
            }
        },
    ))
}

/// Tells whether a link stands anywhere on the way to a file.
fn leads_over_a_link(root: &Path, path: &str) -> bool {
    let Ok(path) = percent_decode_str(path).decode_utf8() else { return true };
    let mut at = root.to_owned();
    path.split('/').filter(|part| !part.is_empty()).any(|part| {
        at.push(part);
        std::fs::symlink_metadata(&at).is_ok_and(|found| found.is_symlink())
    })
}
