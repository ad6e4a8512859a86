//! Which scope a request needs; what a decision needs beside it is the service's to know.

use axum::http::Method;
use perihelion_people::Scope;

/// Ends of addresses to which a question is posted that changes nothing.
const LOOKS: [&str; 7] = [
    "/search",
    "/count",
    "/history",
    "/state/checkpoint",
    "/versions",
    "/namespaces",
    "/stream/events",
];

/// Returns the scope that a request needs; none for what everybody known may do: see who they are, and see to their keys.
pub(super) fn needed(method: &Method, path: &str) -> Option<Scope> {
    if path.starts_with("/v1/auth/") || path == "/v1/keys" || path.starts_with("/v1/keys/") {
        return None;
    }
    let asks = method == Method::POST && LOOKS.iter().any(|end| path.ends_with(end));
    let looks = method.is_safe() || asks;
    Some(if looks { Scope::Read } else { Scope::Run })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_needs_another_scope_than_running() {
        assert_eq!(needed(&Method::GET, "/threads/x/state"), Some(Scope::Read));
        assert_eq!(needed(&Method::POST, "/threads/search"), Some(Scope::Read));
        assert_eq!(needed(&Method::POST, "/threads/x/runs/stream"), Some(Scope::Run));
        assert_eq!(needed(&Method::DELETE, "/threads/x"), Some(Scope::Run));
        assert_eq!(needed(&Method::POST, "/v1/auth/logout"), None);
    }
}
