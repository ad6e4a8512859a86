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
use axum::extract::DefaultBodyLimit;

use self::kept::Kept;
pub(crate) use self::kept::Opened;
use crate::http::Forms;
use crate::http::routing::{boxed, get, post, put};
use perihelion_service::Service;

pub(crate) fn router(service: Service, opened: Arc<Opened>) -> Router {
    Router::new()
        .route("/v1/approvals", get(approvals::list))
        .route("/v1/approvals/history", get(approvals::history))
        .route("/v1/approvals/{id}", get(approvals::get).post(boxed(approvals::answer)))
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
        .route("/v1/teams", get(teams::list).post(boxed(teams::create)))
        .route("/v1/teams/{name}", get(teams::get).delete(boxed(teams::delete)))
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
        .with_state(service.clone())
        .merge(known(Kept { service, opened }))
}

/// Makes the routes to data that outlives a thread: skills, memories, documents.
fn known(kept: Kept) -> Router {
    Router::new()
        .route("/v1/skills", get(kept::skills))
        .route("/v1/skills/{id}", get(kept::skill).delete(boxed(kept::forget_skill)))
        .route("/v1/memory", get(kept::memories))
        .route("/v1/memory/{key}", put(kept::remember).delete(boxed(kept::forget_memory)))
        .route(
            "/v1/documents",
            get(documents::list)
                .merge(post(documents::add).layer(DefaultBodyLimit::max(documents::LONGEST))),
        )
        .route("/v1/documents/export", get(documents::export))
        .route("/v1/documents/search", get(documents::search))
        .route("/v1/documents/{id}/page", get(documents::page))
        .route("/v1/documents/{id}", get(documents::get).delete(boxed(documents::delete)))
        .with_state(kept)
}

pub(super) fn forms(forms: &mut Forms) {
    forms.body::<approvals::Given>("post /v1/approvals/{id}");
    forms.body::<approvals::Given>("post /v1/approvals/{id}/approve");
    forms.body::<approvals::Given>("post /v1/approvals/{id}/deny");
    forms.query::<approvals::Page>("get /v1/approvals/history");
    forms.query::<runs::Search>("get /v1/runs");
    forms.body::<teams::Wanted>("post /v1/teams");
    forms.query::<teams::Which>("get /v1/teams/{name}");
    forms.query::<traces::Wanted>("get /v1/threads/{thread}/report");
    forms.query::<traces::Which>("get /v1/threads/{thread}/trace");
    forms.query::<traces::Which>("get /v1/threads/{thread}/trace/page");
    forms.bytes("post /v1/threads/import");
    forms.query::<kept::Words>("get /v1/skills");
    forms.query::<kept::Whose>("get /v1/memory");
    forms.query::<kept::Whose>("put /v1/memory/{key}");
    forms.body::<kept::Given>("put /v1/memory/{key}");
    forms.query::<kept::Whose>("delete /v1/memory/{key}");
    forms.body::<servers::ToCall>("post /v1/agents/{name}/tools/{tool}");
    forms.body::<servers::Seen>("post /v1/servers/{name}/approve");
    forms.query::<fleet::Window>("get /v1/fleet/usage");
    forms.query::<fleet::Window>("get /v1/fleet/tenants");
    forms.query::<compared::Again>("get /v1/threads/{thread}/replay");
    forms.query::<evaluations::Source>("get /v1/evaluations/data");
    forms.body::<evaluations::Trial>("post /v1/threads/{thread}/again");
    forms.query::<compared::Other>("get /v1/threads/{thread}/diff");
    forms.query::<documents::Which>("get /v1/documents");
    forms.query::<documents::Which>("get /v1/documents/export");
    forms.query::<documents::Question>("get /v1/documents/search");
    forms.query::<documents::About>("post /v1/documents");
    forms.bytes("post /v1/documents");
    forms.query::<documents::WhichPage>("get /v1/documents/{id}/page");
    forms.query::<documents::Part>("get /v1/documents/{id}");
}
