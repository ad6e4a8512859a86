//! Whether the process lives, and whether it can serve.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;

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
        return (StatusCode::SERVICE_UNAVAILABLE, "this process ends\n".to_owned());
    }
    match service.kept().check().await {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
    }
}
