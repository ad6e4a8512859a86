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

use crate::http::routing::{boxed, get, patch, post};
use crate::http::{Forms, Refusal, not_allowed, not_found};
use perihelion_service::Service;

/// Headers of answers that clients in browsers read.
pub const EXPOSED: &str = "content-location, location, x-pagination-total, x-pagination-next";

#[derive(Clone)]
struct AppState {
    service: Service,
    /// The start of the process, which is the creation time of default assistants.
    since: DateTime<Utc>,
}

pub fn router(service: Service) -> Router {
    let app = AppState { since: service.since(), service };
    Router::new()
        .route("/ok", get(ok))
        .route("/info", get(info))
        .route("/assistants", post(assistants::create))
        .route("/assistants/search", post(assistant_search::search))
        .route("/assistants/count", post(assistant_search::count))
        .route(
            "/assistants/{id}",
            get(assistants::get).patch(boxed(assistants::update)).delete(boxed(assistants::delete)),
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
            get(threads::get).patch(boxed(threads::update)).delete(boxed(threads::delete)),
        )
        .route("/threads/{thread}/copy", post(threads::copy))
        .route("/threads/{thread}/state", get(state::get).post(boxed(state::update)))
        .route("/threads/{thread}/state/checkpoint", post(state::at_named))
        .route("/threads/{thread}/state/{checkpoint}", get(state::at))
        .route("/threads/{thread}/history", get(history::list_by_query).post(boxed(history::list)))
        .route("/threads/{thread}/commands", post(protocol::post))
        .route("/threads/{thread}/stream/events", get(protocol::open).post(boxed(protocol::events)))
        .route("/threads/{thread}/stream", get(thread_stream::follow))
        .route("/threads/{thread}/runs", get(runs::list).post(boxed(runs::create)))
        .route("/threads/{thread}/runs/stream", post(stream::create))
        .route("/threads/{thread}/runs/wait", post(runs::create_and_wait))
        .route("/threads/{thread}/runs/crons", post(crons::create_for_thread))
        .route("/threads/{thread}/runs/{run}", get(runs::get).delete(boxed(runs::delete)))
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
        .route("/runs/crons/{cron}", patch(crons::update).delete(boxed(crons::delete)))
        .route("/runs/{run}/stream", get(runs::stream_by_id))
        .route("/store/items", get(items::get).put(boxed(items::put)).delete(boxed(items::delete)))
        .route("/store/items/search", post(items::search))
        .route("/store/namespaces", post(items::namespaces))
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .with_state(app)
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

pub(super) fn forms(forms: &mut Forms) {
    forms.body::<assistants::Create>("post /assistants");
    forms.body::<assistants::Create>("patch /assistants/{id}");
    forms.query::<assistants::Deletion>("delete /assistants/{id}");
    forms.body::<assistants::Which>("post /assistants/{id}/versions");
    forms.body::<assistants::Choose>("post /assistants/{id}/latest");
    forms.body::<assistant_search::Search>("post /assistants/search");
    forms.body::<assistant_search::Search>("post /assistants/count");
    forms.query::<drawings::Depth>("get /assistants/{id}/graph");
    forms.query::<drawings::Depth>("get /assistants/{id}/subgraphs");
    forms.query::<drawings::Depth>("get /assistants/{id}/subgraphs/{namespace}");
    forms.body::<threads::Create>("post /threads");
    forms.body::<threads::Update>("patch /threads/{thread}");
    forms.body::<threads::Prune>("post /threads/prune");
    forms.body::<thread_search::Search>("post /threads/search");
    forms.body::<thread_search::Search>("post /threads/count");
    forms.query::<state::Depth>("get /threads/{thread}/state");
    forms.query::<state::Depth>("get /threads/{thread}/state/{checkpoint}");
    forms.body::<state::AtNamed>("post /threads/{thread}/state/checkpoint");
    forms.body::<state::Update>("post /threads/{thread}/state");
    forms.body::<history::History>("post /threads/{thread}/history");
    forms.query::<history::HistoryQuery>("get /threads/{thread}/history");
    for route in [
        "post /threads/{thread}/runs",
        "post /threads/{thread}/runs/stream",
        "post /threads/{thread}/runs/wait",
        "post /runs",
        "post /runs/stream",
        "post /runs/wait",
    ] {
        forms.body::<wire::RunBody>(route);
    }
    forms.body::<Vec<wire::RunBody>>("post /runs/batch");
    forms.query::<runs::List>("get /threads/{thread}/runs");
    forms.query::<stream::Join>("get /threads/{thread}/runs/{run}/stream");
    forms.query::<stream::Join>("get /runs/{run}/stream");
    forms.body::<cancel::CancelMany>("post /runs/cancel");
    forms.query::<cancel::HowToCancel>("post /threads/{thread}/runs/{run}/cancel");
    forms.query::<cancel::HowToCancel>("post /runs/cancel");
    forms.body::<items::Put>("put /store/items");
    forms.query::<items::Named>("get /store/items");
    forms.body::<items::Delete>("delete /store/items");
    forms.body::<items::Search>("post /store/items/search");
    forms.body::<items::Namespaces>("post /store/namespaces");
    forms.body::<crons::Create>("post /runs/crons");
    forms.body::<crons::Create>("post /threads/{thread}/runs/crons");
    forms.body::<crons::Create>("patch /runs/crons/{cron}");
    forms.body::<crons::Search>("post /runs/crons/search");
    forms.body::<crons::Search>("post /runs/crons/count");
    forms.query::<thread_stream::Which>("get /threads/{thread}/stream");
    forms.body::<protocol::Command>("post /threads/{thread}/commands");
    forms.body::<protocol::Wanted>("post /threads/{thread}/stream/events");
}
