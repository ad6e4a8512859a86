//! Numbers for Prometheus; whether the process lives, and whether it can serve.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use perihelion_runtime::{Metrics, Readiness};
use perihelion_service::Service;
use perihelion_service::kept::Kept;

/// The answer of a process that cannot use its database. The reason can contain host names, so it is only logged.
const AWAY: &str = "the database cannot be used; see the log\n";

const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub fn router(metrics: Metrics) -> Router {
    numbers(metrics).route("/healthz", get(async || "ok\n"))
}

/// Makes the routes of a worker: `/metrics`, `/healthz`, and `/readyz`, which checks the database of `rows` and names
/// required MCP servers that are not up.
pub fn of_worker(metrics: Metrics, readiness: Readiness, rows: Option<Kept>) -> Router {
    let ready = async move || match &rows {
        Some(rows) if !can_use(rows).await => (StatusCode::SERVICE_UNAVAILABLE, AWAY.to_owned()),
        _ => by_servers(&readiness),
    };
    router(metrics).route("/readyz", get(ready))
}

pub fn numbers(metrics: Metrics) -> Router {
    Router::new().route("/metrics", get(scrape)).with_state(Arc::new(metrics))
}

async fn scrape(State(metrics): State<Arc<Metrics>>) -> Response {
    match metrics.text().await {
        Ok(text) => ([(header::CONTENT_TYPE, FORMAT)], text).into_response(),
        Err(error) => {
            tracing::warn!(%error, "failed to serve metrics");
            (StatusCode::INTERNAL_SERVER_ERROR, "failed; see the log\n").into_response()
        }
    }
}

pub(super) fn health(service: Service) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(service)
}

/// Answers whether the service can serve. Everyone can ask, so what it lacks is named in the log alone.
async fn ready(State(service): State<Service>) -> impl IntoResponse {
    let away = StatusCode::SERVICE_UNAVAILABLE;
    if service.stop().is_cancelled() {
        return (away, "the process is shutting down\n");
    }
    if !can_use(service.kept()).await {
        return (away, AWAY);
    }
    let (status, missing) = by_servers(&service.runtime().readiness());
    if status == StatusCode::OK {
        return (status, "ok\n");
    }
    tracing::warn!(reason = missing.trim(), "not ready");
    (status, "required MCP servers are not up; see the log\n")
}

/// Returns whether the database can be used; the log says why not.
async fn can_use(rows: &Kept) -> bool {
    let checked = rows.check().await;
    checked.inspect_err(|error| tracing::warn!(%error, "not ready")).is_ok()
}

/// Answers whether the required MCP servers are up, and which are not.
fn by_servers(readiness: &Readiness) -> (StatusCode, String) {
    match readiness.missing().as_slice() {
        [] => (StatusCode::OK, "ok\n".to_owned()),
        missing => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("required MCP servers are not up: {}\n", missing.join(", ")),
        ),
    }
}
