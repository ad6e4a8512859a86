//! Guards a server without authentication against web pages.

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::{Router, body};

/// Answers only requests that were addressed to a loopback name.
///
/// A page in the user's browser can let a name of its own point at 127.0.0.1 and read what is served there; the
/// browser still says by which name it asked.
pub fn loopback_only(router: Router) -> Router {
    router.layer(middleware::from_fn(guard))
}

async fn guard(request: Request<body::Body>, next: Next) -> Response {
    // HTTP/2 has the name in the address instead.
    let named = host(request.headers()).or_else(|| request.uri().host().map(str::to_owned));
    if named.as_deref().is_some_and(is_loopback) {
        next.run(request).await
    } else {
        let why = "this server has no authentication and answers to loopback names only\n";
        (StatusCode::FORBIDDEN, why).into_response()
    }
}

/// Returns the name in the `Host` header, without the port.
fn host(headers: &HeaderMap) -> Option<String> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let authority: axum::http::uri::Authority = host.parse().ok()?;
    Some(authority.host().to_owned())
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_loopback() {
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in
            ["", "example.org", "localhost.example.org", "127.0.0.1.example.org", "10.0.0.1"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
