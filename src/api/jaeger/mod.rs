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

use axum::Router;
use axum::routing::get;
use tower_http::services::{ServeDir, ServeFile};

use self::refusal::Refusal;
use crate::runtime::TraceFinder;

/// Name of the one service, as spans are exported under it.
const SERVICE: &str = env!("CARGO_PKG_NAME");

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
pub fn interface(directory: &Path) -> ServeDir<ServeFile> {
    ServeDir::new(directory).fallback(ServeFile::new(directory.join("index.html")))
}
