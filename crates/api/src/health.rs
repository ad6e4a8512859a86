//! Whether the process lives, and whether it can serve.

use crate::http::routing::get;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;

use perihelion_runtime::Readiness;
use perihelion_service::Service;

/// Makes the routes.
pub(super) fn router(service: Service) -> Router {
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
pub(super) fn by_servers(readiness: &Readiness) -> (StatusCode, String) {
    match readiness.missing().as_slice() {
        [] => (StatusCode::OK, "ok\n".to_owned()),
        missing => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("required MCP servers are not up: {}\n", missing.join(", ")),
        ),
    }
}
