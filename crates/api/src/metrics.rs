//! Numbers for Prometheus; whether the process lives, and whether it can serve.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::http::routing::get;
use perihelion_runtime::{Metrics, Readiness};
use perihelion_service::Service;

const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub fn router(metrics: Metrics) -> Router {
    numbers(metrics).route("/healthz", get(async || "ok\n"))
}

/// Makes the routes of a worker: `/metrics`, `/healthz`, and `/readyz`, which names required MCP servers that are not up.
pub fn of_worker(metrics: Metrics, readiness: Readiness) -> Router {
    let ready = async move || by_servers(&readiness);
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
            (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response()
        }
    }
}

pub(super) fn health(service: Service) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(service)
}

async fn ready(State(service): State<Service>) -> impl IntoResponse {
    if service.stop().is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the process is shutting down\n".to_owned());
    }
    match service.kept().check().await {
        Ok(()) => by_servers(&service.runtime().readiness()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
    }
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
