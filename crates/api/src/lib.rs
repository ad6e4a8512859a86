//! Everything served over HTTP: the Agent Server API, OpenAI, A2A, MCP, the web UI, Jaeger's read API, and metrics.
//!
//! Enter at [`router`], which has all routes of `perihelion serve`, or at the router of one API. Invariant: a
//! router does not know its callers, so one without authentication is behind a guard. Deliberately absent: stores and
//! projections, which only the runtime and the service know.

mod a2a;
mod agent_server;
mod auth;
mod conversation;
pub mod deliver;
mod event_stream;
mod hidden;
mod http;
pub mod jaeger;
mod mcp;
pub mod metrics;
mod openai;
mod openapi;
mod own;
mod page;
mod parts;
mod questions;
mod refused_socket;
mod request_fields;
mod sent_text;
mod team;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{Next, from_fn};
use perihelion_http::Guard;

use self::auth::Gate;
pub use self::auth::check_issuers;
use self::hidden::ModelAddresses;
use perihelion_runtime::Metrics;
use perihelion_service::Service;
use perihelion_settings::config::Serve;

/// Makes all routes over a service.
///
/// Without authentication, requests must be addressed to a loopback name. The health routes, the page's files and the
/// agent card are public.
pub fn router(service: Service, metrics: Metrics, settings: &Serve) -> Router {
    service.tell(Arc::new(a2a::TaskAddresses));
    let addresses = ModelAddresses::of(&service.runtime().settings().models);
    let numbers = metrics::numbers(metrics);
    let opened = Arc::default();
    let routes = move |service| faces(service, &opened).merge(numbers.clone());
    let gate = Gate::new(service.clone(), settings, routes);
    let open =
        metrics::health(service.clone()).merge(page::router()).merge(a2a::discovery(service));
    let router = gate.before(open).layer(DefaultBodyLimit::max(settings.max_body_bytes));
    let guard = Guard::new(settings.origins.0.clone(), agent_server::EXPOSED);
    let hosts = &settings.hosts.0;
    let guard = if settings.is_protected() || !hosts.is_empty() {
        guard.for_hosts(hosts.clone())
    } else {
        guard
    };
    let router = guard.before(router).layer(from_fn(async |request: Request, next: Next| {
        if request.uri().path().starts_with("/v1/") {
            openai::with_error(request, next).await
        } else {
            next.run(request).await
        }
    }));
    addresses.before(router)
}

/// Makes the routes of all APIs over the service for a caller.
fn faces(service: Service, opened: &Arc<own::Opened>) -> Router {
    agent_server::router(service.clone())
        .merge(openai::routes().with_state(service.clone()))
        .merge(own::router(service.clone(), Arc::clone(opened)))
        .merge(mcp::router(service.clone()))
        .merge(a2a::router(service.clone()))
        .merge(auth::routes().with_state(service))
        .merge(openapi::router())
}

/// Answers only requests that are addressed to a loopback name, and none from pages of other sites.
///
/// It guards servers without authentication.
pub fn loopback_only(router: Router) -> Router {
    Guard::new(Vec::new(), "").before(router)
}
