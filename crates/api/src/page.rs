//! The page, from files in the program itself.

use crate::http::routing::get;
use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use include_dir::{Dir, include_dir};

/// What was built from `web/`.
static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../web/dist");

/// Has the program built again when the page was: its first file names all others by their content.
const _: &[u8] = include_bytes!("../../../web/dist/index.html");

/// What the page may do: nothing that leaves this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    font-src 'self'; connect-src 'self'; frame-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// Makes the routes of the page: `/`, and its files under `/ui/`. Places in the page stand after `#`, which no server sees.
pub(super) fn router() -> Router {
    Router::new()
        .route("/", get(|| async { file("index.html") }))
        .route("/ui/{*path}", get(|Path(path): Path<String>| async move { file(&path) }))
}

fn file(path: &str) -> Response {
    let Some(found) = FILES.get_file(path) else {
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
    (headers, found.contents()).into_response()
}

fn kind(path: &str) -> &'static str {
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

    /// S3.13: whatever the page names is there, and it names no address outside.
    #[test]
    fn every_file_that_the_page_names_is_embedded() {
        let page = FILES.get_file("index.html").unwrap().contents_utf8().unwrap();
        let named = page.split(['"', '\'']).filter_map(|part| part.strip_prefix("ui/"));
        let named: Vec<&str> = named.collect();
        assert!(named.len() >= 3, "{named:?}");
        for name in named {
            assert!(FILES.get_file(name).is_some_and(|file| !file.contents().is_empty()), "{name}");
        }
        assert!(!page.contains("://"), "{page}");
    }
}
