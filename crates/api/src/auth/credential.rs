//! The credential of a request, and the scope that it needs; further conditions of a decision belong to the service.

use axum::http::{HeaderMap, Method, header};
use perihelion_people::Scope;

/// Name of the cookie of a session; scripts cannot read it.
pub(super) const SESSION: &str = "perihelion_session";

/// Name of the cookie that the page sends back as a header; only pages of this service can read it.
pub(super) const CSRF: &str = "perihelion_csrf";

pub(super) const CSRF_HEADER: &str = "x-csrf-token";

/// How every API key begins.
const KEY: &str = "ph_";

/// A credential; it has no `Debug`, because it is a secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Credential {
    Key(String),
    /// The token of the settings, or one of another issuer.
    Bearer(String),
    Session(String),
}

impl Credential {
    /// Reads the headers: `x-api-key`, then `Authorization: Bearer`, then the cookie of a session.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        if let Some(shown) = shown(headers) {
            return Some(if shown.starts_with(KEY) {
                Self::Key(shown.to_owned())
            } else {
                Self::Bearer(shown.to_owned())
            });
        }
        cookie(headers, SESSION).map(|cookie| Self::Session(cookie.to_owned()))
    }

    pub(super) fn digest(&self) -> blake3::Hash {
        let (kind, text) = match self {
            Self::Key(text) => ("key", text),
            Self::Bearer(text) => ("bearer", text),
            Self::Session(text) => ("session", text),
        };
        blake3::hash(format!("{kind}\n{text}").as_bytes())
    }
}

fn shown(headers: &HeaderMap) -> Option<&str> {
    let key = headers.get("x-api-key").and_then(|key| key.to_str().ok());
    let bearer = || {
        let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token)
    };
    key.or_else(bearer).map(str::trim).filter(|text| !text.is_empty())
}

pub(super) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(key, value)| (key.trim(), value.trim()))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// Endings of addresses of POST requests that change nothing.
const LOOKS: [&str; 8] = [
    "/search",
    "/count",
    "/history",
    "/state/checkpoint",
    "/versions",
    "/namespaces",
    "/stream/events",
    ":subscribe",
];

/// Addresses of messages that look or change something, as they say: what changes something asks for its scope itself.
const MESSAGES: [&str; 3] = ["/a2a", "/a2a/", "/mcp"];

/// Returns the scope that a request needs; `None` for requests that every authenticated caller can make: who they are,
/// and their keys.
pub(super) fn needed_scope(method: &Method, path: &str) -> Option<Scope> {
    if path.starts_with("/v1/auth/") || path == "/v1/keys" || path.starts_with("/v1/keys/") {
        return None;
    }
    let is_look = MESSAGES.contains(&path) || LOOKS.iter().any(|end| path.ends_with(end));
    let asks = method == Method::POST && is_look;
    let looks = method.is_safe() || asks;
    Some(if looks { Scope::Read } else { Scope::Run })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_key_precedes_a_bearer_token_which_precedes_a_cookie() {
        let all = [
            ("x-api-key", "ph_one"),
            ("authorization", "bearer two"),
            ("cookie", "a=b; perihelion_session=three"),
        ];
        let of = |from: usize| Credential::of(&headers(&all[from..]));
        assert!(of(0) == Some(Credential::Key("ph_one".into())));
        assert!(of(1) == Some(Credential::Bearer("two".into())));
        assert!(of(2) == Some(Credential::Session("three".into())));
        assert!(of(3).is_none());
        assert!(Credential::of(&headers(&[("authorization", "Basic x")])).is_none());
    }

    #[test]
    fn looking_needs_another_scope_than_running() {
        assert_eq!(needed_scope(&Method::GET, "/threads/x/state"), Some(Scope::Read));
        assert_eq!(needed_scope(&Method::POST, "/threads/search"), Some(Scope::Read));
        assert_eq!(needed_scope(&Method::POST, "/a2a"), Some(Scope::Read));
        assert_eq!(needed_scope(&Method::POST, "/a2a/tasks/x:subscribe"), Some(Scope::Read));
        assert_eq!(needed_scope(&Method::POST, "/a2a/message:send"), Some(Scope::Run));
        assert_eq!(needed_scope(&Method::POST, "/threads/x/runs/stream"), Some(Scope::Run));
        assert_eq!(needed_scope(&Method::DELETE, "/threads/x"), Some(Scope::Run));
        assert_eq!(needed_scope(&Method::POST, "/v1/auth/logout"), None);
    }
}
