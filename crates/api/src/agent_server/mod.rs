//! The Agent Server API: threads, runs and their streams, for LangGraph clients.
//!
//! [`router`] has the routes. Shapes and status codes are those recorded from the reference server; only `wire/` knows
//! them. Deliberately absent: any decision about a run.

mod accept;
mod assistant_search;
mod assistants;
mod cancel;
mod crons;
mod drawings;
mod history;
mod items;
mod protocol;
mod runs;
mod state;
mod stream;
mod thread_search;
mod thread_stream;
mod threads;
mod wire;

use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

pub(super) use runs::called;
pub(super) use wire::text_of_content;

use crate::http::routing::{Routes, get, patch, post};
use crate::http::{Refusal, not_allowed, not_found};
use perihelion_service::Service;

/// Headers of answers that clients in browsers read.
pub const EXPOSED: &str = "content-location, location, x-pagination-total, x-pagination-next";

#[derive(Clone)]
pub(super) struct AppState {
    service: Service,
    /// The start of the process, which is the creation time of default assistants.
    since: DateTime<Utc>,
}

pub fn router(service: Service) -> Router {
    let app = AppState { since: service.since(), service };
    let router = routes().with_state(app);
    router.fallback(not_found).method_not_allowed_fallback(not_allowed)
}

pub(super) fn routes() -> Routes<AppState> {
    Routes::new()
        .route("/ok", get(ok))
        .route("/info", get(info))
        .route("/assistants", post(assistants::create))
        .route("/assistants/search", post(assistant_search::search))
        .route("/assistants/count", post(assistant_search::count))
        .route(
            "/assistants/{id}",
            get(assistants::get).patch(assistants::update).delete(assistants::delete),
        )
        .route("/assistants/{id}/graph", get(drawings::graph))
        .route("/assistants/{id}/schemas", get(drawings::schemas))
        .route("/assistants/{id}/subgraphs", get(drawings::subgraphs))
        .route("/assistants/{id}/subgraphs/{namespace}", get(drawings::subgraphs_of))
        .route("/assistants/{id}/versions", post(assistants::versions))
        .route("/assistants/{id}/latest", post(assistants::choose))
        .route("/threads", post(threads::create))
        .route("/threads/search", post(thread_search::search))
        .route("/threads/count", post(thread_search::count))
        .route("/threads/prune", post(threads::prune))
        .route(
            "/threads/{thread}",
            get(threads::get).patch(threads::update).delete(threads::delete),
        )
        .route("/threads/{thread}/copy", post(threads::copy))
        .route("/threads/{thread}/state", get(state::get).post(state::update))
        .route("/threads/{thread}/state/checkpoint", post(state::at_named))
        .route("/threads/{thread}/state/{checkpoint}", get(state::at))
        .route("/threads/{thread}/history", get(history::list_by_query).post(history::list))
        .route("/threads/{thread}/commands", post(protocol::post))
        .route("/threads/{thread}/stream/events", get(protocol::open).post(protocol::events))
        .route("/threads/{thread}/stream", get(thread_stream::follow))
        .route("/threads/{thread}/runs", get(runs::list).post(runs::create))
        .route("/threads/{thread}/runs/stream", post(stream::create))
        .route("/threads/{thread}/runs/wait", post(runs::create_and_wait))
        .route("/threads/{thread}/runs/crons", post(crons::create_for_thread))
        .route("/threads/{thread}/runs/{run}", get(runs::get).delete(runs::delete))
        .route("/threads/{thread}/runs/{run}/join", get(runs::join))
        .route("/threads/{thread}/runs/{run}/stream", get(stream::join))
        .route("/threads/{thread}/runs/{run}/cancel", post(cancel::cancel))
        .route("/runs", post(runs::create))
        .route("/runs/stream", post(stream::create))
        .route("/runs/wait", post(runs::create_and_wait))
        .route("/runs/batch", post(runs::batch))
        .route("/runs/cancel", post(cancel::cancel_many))
        .route("/runs/crons", post(crons::create))
        .route("/runs/crons/search", post(crons::search))
        .route("/runs/crons/count", post(crons::count))
        .route("/runs/crons/{cron}", patch(crons::update).delete(crons::delete))
        .route("/runs/{run}/stream", get(runs::stream_by_id))
        .route("/store/items", get(items::get).put(items::put).delete(items::delete))
        .route("/store/items/search", post(items::search))
        .route("/store/namespaces", post(items::namespaces))
}

async fn ok() -> Json<Value> {
    Json(json!({ "ok": true, "services": {} }))
}

async fn info() -> Json<Value> {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "langgraph_py_version": null,
        "flags": {
            "assistants": true,
            "crons": true,
            "langsmith": false,
            "langsmith_tracing_replicas": false,
            "langsmith_tracing_session_on_runs": false,
        },
        "host": {
            "kind": "self-hosted",
            "project_id": null,
            "host_revision_id": null,
            "revision_id": null,
            "tenant_id": null,
        },
    }))
}

/// Makes the answer of a search, with the total number and the start of the next page.
fn page(shown: Vec<Value>, offset: u32, total: u64) -> Response {
    let next = u64::from(offset) + shown.len() as u64;
    let mut response = Json(shown).into_response();
    response.headers_mut().insert("x-pagination-total", total.into());
    if next < total {
        response.headers_mut().insert("x-pagination-next", next.into());
    }
    response
}
