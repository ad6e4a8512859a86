//! The page, from files in the program itself.

use crate::http::routing::{Routes, get};
use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

/// The build of `web/`: names and contents of files.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The content security policy of the page, which permits only this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    font-src 'self'; connect-src 'self'; frame-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// Makes the routes of the page: `/`, and its files under `/ui/`. Locations in the page follow `#`, which servers never
/// see.
pub(super) fn router() -> Router {
    Routes::new()
        .route("/", get(|| async { file("index.html") }))
        .route("/ui/{*path}", get(|Path(path): Path<String>| async move { file(&path) }))
        .with_state(())
}

fn embedded(path: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(name, _)| *name == path).map(|(_, content)| *content)
}

fn file(path: &str) -> Response {
    let Some(content) = embedded(path) else {
        return (StatusCode::NOT_FOUND, "file not found\n").into_response();
    };
    // Names of scripts and styles change with their content; those of the page and its icon do not.
    let kept = match path.rsplit('.').next() {
        Some("js" | "css") => "public, max-age=31536000, immutable",
        Some("svg") => "public, max-age=3600",
        _ => "no-cache",
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind(path))),
        (header::CACHE_CONTROL, HeaderValue::from_static(kept)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    (headers, content).into_response()
}

pub(crate) fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "json" | "map" | "webmanifest" => "application/json",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3.13: all files that the page names exist, and it names no external address.
    #[test]
    fn every_file_that_the_page_names_is_embedded() {
        let page = std::str::from_utf8(embedded("index.html").unwrap()).unwrap();
        let named = page.split(['"', '\'']).filter_map(|part| part.strip_prefix("ui/"));
        let named: Vec<&str> = named.collect();
        assert!(named.len() >= 3, "{named:?}");
        for name in named {
            assert!(embedded(name).is_some_and(|content| !content.is_empty()), "{name}");
        }
        assert!(!page.contains("://"), "{page}");
    }
}
