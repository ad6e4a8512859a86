//! Our own few routes, in addition to the protocols: approvals, audit, agents, servers, teams, runs, traces, export,
//! fleet, evaluations, skills and memories.
//!
//! [`router`] has them, all below `/v1`. Open requests to people are listed over all threads, and a decision continues
//! the thread at once. Deliberately absent: features that another API has.

mod approvals;
mod artifacts;
mod compared;
mod documents;
mod evaluations;
mod fleet;
mod kept;
mod runs;
mod servers;
mod teams;
mod traces;

use std::sync::Arc;

use axum::Router;

use self::kept::Kept;
pub(crate) use self::kept::Opened;
use crate::http::Forms;
use crate::http::routing::{Routes, get, post, put};
use perihelion_service::Service;

pub(crate) fn router(service: Service, opened: Arc<Opened>) -> Router {
    routes().with_state(service.clone()).merge(known().with_state(Kept { service, opened }))
}

fn routes() -> Routes<Service> {
    Routes::new()
        .route("/v1/approvals", get(approvals::list))
        .route("/v1/approvals/history", get(approvals::history))
        .route("/v1/approvals/{id}", get(approvals::get).post(approvals::answer))
        .route("/v1/approvals/{id}/approve", post(approvals::approve))
        .route("/v1/approvals/{id}/deny", post(approvals::deny))
        .route("/v1/agents", get(servers::agents))
        .route("/v1/agents/{name}", get(servers::agent))
        .route("/v1/agents/{name}/tools/{tool}", post(servers::call))
        .route("/v1/servers", get(servers::list))
        .route("/v1/servers/{name}/changes", get(servers::changes))
        .route("/v1/servers/{name}/approve", post(servers::approve))
        .route("/v1/evaluations/data", get(evaluations::data))
        .route("/v1/fleet", get(fleet::get))
        .route("/v1/fleet/usage", get(fleet::spent))
        .route("/v1/fleet/tenants", get(fleet::tenants))
        .route("/v1/fleet/local-models", get(fleet::local_models))
        .route("/v1/fleet/check-model", post(fleet::check_model))
        .route("/v1/runs", get(runs::list))
        .route("/v1/teams", get(teams::list).post(teams::create))
        .route("/v1/teams/{name}", get(teams::get).delete(teams::delete))
        .route("/v1/threads/{thread}/report", get(traces::report))
        .route("/v1/threads/{thread}/trace", get(traces::get))
        .route("/v1/threads/{thread}/trace/page", get(traces::page))
        .route("/v1/threads/{thread}/replay", get(compared::replay))
        .route("/v1/threads/{thread}/diff", get(compared::diff))
        .route("/v1/threads/{thread}/again", post(evaluations::again))
        .route("/v1/threads/{thread}/artifacts", get(artifacts::list))
        .route("/v1/threads/{thread}/artifacts/{*key}", get(artifacts::get))
        .route("/v1/threads/{thread}/export", get(traces::export))
        .route("/v1/threads/import", post(traces::import))
}

/// Makes the routes to data that outlives a thread: skills, memories, documents.
fn known() -> Routes<Kept> {
    Routes::new()
        .route("/v1/skills", get(kept::skills))
        .route("/v1/skills/{id}", get(kept::skill).delete(kept::forget_skill))
        .route("/v1/memory", get(kept::memories))
        .route("/v1/memory/{key}", put(kept::remember).delete(kept::forget_memory))
        .route("/v1/documents", get(documents::list).post(documents::add).up_to(documents::LONGEST))
        .route("/v1/documents/export", get(documents::export))
        .route("/v1/documents/search", get(documents::search))
        .route("/v1/documents/{id}/page", get(documents::page))
        .route("/v1/documents/{id}", get(documents::get).delete(documents::delete))
}

pub(super) fn describe(forms: &mut Forms) {
    routes().describe(forms);
    known().describe(forms);
    forms.bytes("post /v1/documents");
}
