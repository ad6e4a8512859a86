//! Everything that `perihelion serve` shows, behind its guard.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use perihelion_http::{Exposed, Guard, Origins};

use super::{a2a, agent_server, auth, health, mcp, metrics, openai, openapi, own, page};
use crate::config::Serve;
use crate::runtime::Metrics;
use crate::service::Service;

/// Longest body that is read.
const BODY: usize = 16 << 20;

/// Makes all routes over a service.
///
/// Without a token requests must be addressed to a loopback name. Whether the process lives is said without one.
pub fn router(service: Service, metrics: Metrics, settings: &Serve) -> Router {
    let faces = agent_server::router(service.clone())
        .merge(openai::router(service.clone()))
        .merge(own::router(service.clone()))
        .merge(mcp::router(service.clone()))
        .merge(a2a::router(service.clone()))
        .merge(openapi::router())
        .merge(metrics::numbers(metrics));
    let faces = match &settings.token {
        Some(token) => auth::behind(token.clone(), faces),
        None => faces,
    };
    let router = faces
        .merge(health::router(service))
        .merge(page::router())
        .layer(DefaultBodyLimit::max(BODY));
    let origins = Origins { listed: settings.origins.0.clone(), loopback: true };
    let guard = Guard::new(origins, Exposed(agent_server::EXPOSED));
    let guard = match (&settings.token, settings.hosts.0.as_slice()) {
        (None, []) => guard,
        (_, hosts) => guard.for_hosts(hosts.to_vec()),
    };
    guard.before(router)
}
