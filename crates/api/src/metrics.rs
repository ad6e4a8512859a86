//! Numbers for Prometheus, and whether the process lives.

use std::sync::Arc;

use crate::http::routing::get;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::health;
use perihelion_runtime::{Metrics, Readiness};

/// The text format of Prometheus.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Makes the routes `/metrics` and `/healthz`.
pub fn router(metrics: Metrics) -> Router {
    numbers(metrics).route("/healthz", get(async || "ok\n"))
}

/// Makes the routes of a worker: `/metrics`, `/healthz`, and `/readyz`, which names required MCP servers that are not up.
pub fn of_worker(metrics: Metrics, readiness: Readiness) -> Router {
    let ready = async move || health::by_servers(&readiness);
    router(metrics).route("/readyz", get(ready))
}

/// Makes the route `/metrics`.
pub fn numbers(metrics: Metrics) -> Router {
    Router::new().route("/metrics", get(scrape)).with_state(Arc::new(metrics))
}

async fn scrape(State(metrics): State<Arc<Metrics>>) -> Response {
    match metrics.text().await {
        Ok(text) => ([(header::CONTENT_TYPE, FORMAT)], text).into_response(),
        Err(error) => {
            tracing::warn!(%error, "failed to serve metrics");
            (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response()
        }
    }
}
