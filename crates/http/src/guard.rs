//! Rejects requests that were addressed to another name, or that a page of another site caused.
//!
//! A page can let its own name point at 127.0.0.1 and read local services; the browser still sends the name (`Host`)
//! and the page's origin (`Origin`). Both are checked on every route, reads included.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header, uri::Authority};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};

use crate::{cors, reach::is_loopback_host};

/// The checks that every request passes before any route sees it.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Origins of pages that can send requests, in addition to pages of this machine.
    origins: Vec<String>,
    /// Host names of requests in addition to loopback ones; empty means any name.
    hosts: Option<Vec<String>>,
    /// Names of response headers that pages can read, separated by commas.
    exposed: &'static str,
}

impl Guard {
    /// Makes a guard that accepts requests to loopback names alone; `origins` are written as browsers write them, such as
    /// `https://chat.example.org`.
    pub fn new(origins: Vec<String>, exposed: &'static str) -> Self {
        Self { origins, hosts: Some(Vec::new()), exposed }
    }

    /// Accepts requests to these names as well; an empty list accepts any name.
    #[must_use]
    pub fn for_hosts(mut self, hosts: Vec<String>) -> Self {
        self.hosts = if hosts.is_empty() { None } else { Some(hosts) };
        self
    }

    /// Puts the guard before all routes, including missing ones.
    pub fn before(self, router: Router) -> Router {
        let guard = Arc::new(self);
        router.layer(middleware::from_fn(move |request, next| {
            let guard = Arc::clone(&guard);
            async move { guard.pass(request, next).await }
        }))
    }

    async fn pass(&self, request: Request<Body>, next: Next) -> Response {
        if let Err(why) = self.check(&request) {
            let body = serde_json::json!({ "detail": why }).to_string();
            let kind = [(header::CONTENT_TYPE, "application/json")];
            return (StatusCode::FORBIDDEN, kind, body).into_response();
        }
        let origin = request.headers().get(header::ORIGIN).cloned();
        let asks = request.method() == Method::OPTIONS
            && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        let mut response = if asks {
            let mut response = "OK".into_response();
            cors::preflight(request.headers(), response.headers_mut());
            response
        } else {
            next.run(request).await
        };
        let headers = response.headers_mut();
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
        if let Some(origin) = origin {
            cors::mark(headers, &origin, self.exposed);
        }
        response
    }

    fn check(&self, request: &Request<Body>) -> Result<(), &'static str> {
        let headers = request.headers();
        let host = host(headers).or_else(|| request.uri().host().map(str::to_owned));
        let named = host.as_deref().unwrap_or_default();
        let known = |hosts: &Vec<String>| hosts.iter().any(|one| one.eq_ignore_ascii_case(named));
        if !is_loopback_host(named) && self.hosts.as_ref().is_some_and(|hosts| !known(hosts)) {
            return Err(
                "this server does not answer to this host name; use localhost, or add the name to serve.hosts of `perihelion serve`",
            );
        }
        match headers.get(header::ORIGIN) {
            Some(origin) => {
                let origin = origin.to_str().unwrap_or_default();
                if !self.allows(origin) && !is_same(origin, headers) {
                    return Err(
                        "pages of this origin may not use this server; add the origin to serve.origins of `perihelion serve`",
                    );
                }
            }
            // A link that is followed shows a page; everything else that another site causes is refused.
            None if is(headers, "sec-fetch-site", "cross-site") => {
                let is_visit = request.method() == Method::GET
                    && is(headers, "sec-fetch-mode", "navigate")
                    && is(headers, "sec-fetch-dest", "document");
                if !is_visit {
                    return Err("pages of other sites may not use this server");
                }
            }
            None => {}
        }
        Ok(())
    }

    fn allows(&self, origin: &str) -> bool {
        let is_local = origin.parse::<Uri>().is_ok_and(|uri| is_local_page(&uri));
        is_local || self.origins.iter().any(|one| one.eq_ignore_ascii_case(origin))
    }
}

fn is(headers: &HeaderMap, name: &str, value: &str) -> bool {
    headers.get(name).is_some_and(|found| found.as_bytes().eq_ignore_ascii_case(value.as_bytes()))
}

/// Returns whether a page's origin is the very address that it asks.
fn is_same(origin: &str, headers: &HeaderMap) -> bool {
    let asked = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let of = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    of.zip(asked).is_some_and(|(of, asked)| of.eq_ignore_ascii_case(asked))
}

/// Returns the name in the `Host` header, without the port.
fn host(headers: &HeaderMap) -> Option<String> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let authority: Authority = host.parse().ok()?;
    Some(authority.host().to_owned())
}

fn is_local_page(origin: &Uri) -> bool {
    matches!(origin.scheme_str(), Some("http" | "https"))
        && origin.host().is_some_and(is_loopback_host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        Guard::new(vec!["https://chat.example.org".to_owned()], "location")
    }

    fn asked(headers: &[(&str, &str)]) -> Request<Body> {
        let mut request = Request::builder().uri("/threads");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn only_loopback_names_and_allowed_origins_pass() {
        let fine: &[&[(&str, &str)]] = &[
            &[("host", "127.0.0.1:2024")],
            &[("host", "[::1]:2024")],
            &[("host", "localhost"), ("origin", "http://localhost:3000")],
            &[("host", "localhost"), ("origin", "https://chat.example.org")],
            &[
                ("host", "localhost"),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", "navigate"),
                ("sec-fetch-dest", "document"),
            ],
        ];
        for headers in fine {
            assert_eq!(guard().check(&asked(headers)), Ok(()), "{headers:?}");
        }
        let refused: &[&[(&str, &str)]] = &[
            &[],
            &[("host", "rebound.example.org")],
            &[("host", "127.0.0.1.example.org")],
            &[("host", "localhost"), ("origin", "null")],
            &[("host", "localhost"), ("origin", "https://evil.example.org")],
            &[("host", "localhost"), ("origin", "file://localhost")],
            &[("host", "localhost"), ("sec-fetch-site", "cross-site")],
        ];
        for headers in refused {
            assert!(guard().check(&asked(headers)).is_err(), "{headers:?}");
        }
    }

    #[test]
    fn a_guard_for_named_hosts_answers_to_these_and_to_loopback() {
        let guard = guard().for_hosts(vec!["agents.example.org".into()]);
        assert!(guard.check(&asked(&[("host", "agents.example.org")])).is_ok());
        assert!(guard.check(&asked(&[("host", "localhost")])).is_ok());
        assert!(guard.check(&asked(&[("host", "other.example.org")])).is_err());
        let own = [("host", "agents.example.org"), ("origin", "https://agents.example.org")];
        assert!(guard.check(&asked(&own)).is_ok(), "a page of its own");
    }
}
