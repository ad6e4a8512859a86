//! Our own few routes, beside those of the protocols: approvals, agents, teams, traces, export.
//!
//! [`router`] has them, all below `/v1`. What waits for a person is listed over all threads, and a decision continues
//! the thread at once. Deliberately absent: anything that another face has already.

mod agents;
mod approvals;
mod teams;
mod traces;
mod transfer;

use axum::Router;
use axum::routing::{get, post};

use crate::service::Service;

/// Makes the routes over a service.
pub fn router(service: Service) -> Router {
    Router::new()
        .route("/v1/approvals", get(approvals::list))
        .route("/v1/approvals/{id}", get(approvals::get).post(approvals::answer))
        .route("/v1/approvals/{id}/approve", post(approvals::approve))
        .route("/v1/approvals/{id}/deny", post(approvals::deny))
        .route("/v1/agents", get(agents::list))
        .route("/v1/agents/{name}", get(agents::get))
        .route("/v1/teams", get(teams::list).post(teams::create))
        .route("/v1/teams/{name}", get(teams::get).delete(teams::delete))
        .route("/v1/threads/{thread}/trace", get(traces::get))
        .route("/v1/threads/{thread}/trace/page", get(traces::page))
        .route("/v1/threads/{thread}/export", get(transfer::export))
        .route("/v1/threads/import", post(transfer::import))
        .with_state(service)
}
