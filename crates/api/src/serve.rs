//! Everything that `perihelion serve` shows, behind its guard.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn;
use perihelion_http::{Exposed, Guard, Origins};

use super::auth::{self, Gate};
use super::hidden::ModelAddresses;
use super::{a2a, agent_server, mcp, metrics, openai, openapi, own, page};
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
    let routes = move |service| faces(service).merge(numbers.clone());
    let gate = Gate::new(service.clone(), settings, routes);
    let open =
        metrics::health(service.clone()).merge(page::router()).merge(a2a::discovery(service));
    let router = gate.before(open).layer(DefaultBodyLimit::max(settings.max_body_bytes));
    let origins = Origins { listed: settings.origins.0.clone(), loopback: true };
    let guard = Guard::new(origins, Exposed(agent_server::EXPOSED));
    let hosts = &settings.hosts.0;
    let guard = if settings.is_protected() || !hosts.is_empty() {
        guard.for_hosts(hosts.clone())
    } else {
        guard
    };
    let router = guard.before(router).layer(from_fn(openai::with_error));
    addresses.before(router)
}

/// Makes the routes of all APIs over the service for a caller.
fn faces(service: Service) -> Router {
    agent_server::router(service.clone())
        .merge(openai::router(service.clone()))
        .merge(own::router(service.clone()))
        .merge(mcp::router(service.clone()))
        .merge(a2a::router(service.clone()))
        .merge(auth::router(service))
        .merge(openapi::router())
}

/// Answers only requests that are addressed to a loopback name, and none from pages of other sites.
///
/// It guards servers without authentication.
pub fn loopback_only(router: Router) -> Router {
    Guard::new(Origins { listed: Vec::new(), loopback: true }, Exposed("")).before(router)
}
