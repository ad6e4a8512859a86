//! Pages of a real server on this machine, which the operator allows, and what is refused all the same.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::disallowed_methods, reason = "it measures a pause")]

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse};
use axum::routing::{get, post};
use axum::{Json, Router};
use perihelion_web::{
    Addresses, Document, Error, Kind, Limits, Provider, ReadDocument, Reading, Web, Wire,
};
use serde_json::Value;

async fn serve(router: Router) -> String {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

fn web(allowed: &[&str], provider: Option<Provider>) -> Web {
    let allowed: Vec<String> = allowed.iter().map(|host| (*host).to_owned()).collect();
    let limits = Limits { pause: Duration::ZERO, bytes: 20_000, ..Limits::default() };
    Web::open(Addresses::allowing(&allowed), limits, provider, true).unwrap()
}

/// S3.07
#[tokio::test]
async fn a_page_is_read_as_markdown_once_and_then_from_the_cache() {
    let reads = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&reads);
    let text = format!(
        "<html><head><title>Sea</title></head><body><article><h1>Sea</h1><p>{}</p></article></body></html>",
        "Salt water covers most of the earth. ".repeat(20)
    );
    let page = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let text = text.clone();
        async move { Html(text) }
    };
    let address = serve(Router::new().route("/sea", get(page))).await;
    let web = web(&[&address], None);
    let page = web.fetch(&format!("http://{address}/sea#top")).await.unwrap();
    assert_eq!((page.title.as_str(), page.cached), ("Sea", false));
    assert!(page.text.contains("Salt water covers"), "{}", page.text);
    assert!(web.fetch(&format!("http://{address}/sea")).await.unwrap().cached);
    assert_eq!(reads.load(Ordering::SeqCst), 1);
}

/// S3.07
#[tokio::test]
async fn a_page_that_is_sent_compressed_is_read_whether_a_header_names_it_or_not() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all("<p>Salt water, Größe 5</p>".as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let page = |header: &'static str| {
        let gzip = gzip.clone();
        get(async move || ([("content-type", "text/html"), ("content-encoding", header)], gzip))
    };
    let router = Router::new().route("/named", page("gzip")).route("/not", page("identity"));
    let address = serve(router).await;
    let web = web(&[&address], None);
    for path in ["named", "not"] {
        let page = web.fetch(&format!("http://{address}/{path}")).await.unwrap();
        assert_eq!((page.text.trim(), page.truncated), ("Salt water, Größe 5", false), "{path}");
    }
}

/// Reads a document as its text.
struct Plain;

impl ReadDocument for Plain {
    fn read<'a>(&'a self, _name: &'a str, bytes: &'a [u8]) -> Reading<'a> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        Box::pin(async move { Ok(Document { title: None, text }) })
    }
}

#[tokio::test]
async fn a_document_that_is_sent_compressed_is_unpacked() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"Salt water").unwrap();
    let gzip = gzip.finish().unwrap();
    let headers = [("content-type", "application/pdf"), ("content-encoding", "gzip")];
    let address =
        serve(Router::new().route("/a.pdf", get(async move || (headers, gzip.clone())))).await;
    let web = web(&[&address], None).with_documents(Arc::new(Plain));
    let page = web.fetch(&format!("http://{address}/a.pdf")).await.unwrap();
    assert!(page.text.contains("Salt water"), "{}", page.text);
}

/// Reads a document as its name.
struct Named;

impl ReadDocument for Named {
    fn read<'a>(&'a self, name: &'a str, _bytes: &'a [u8]) -> Reading<'a> {
        Box::pin(async move { Ok(Document { title: None, text: name.to_owned() }) })
    }
}

#[tokio::test]
async fn a_document_of_any_kind_is_given_to_the_parser_by_its_content_type() {
    const OFFICE: &str = "application/vnd.openxmlformats-officedocument";
    const OPEN: &str = "application/vnd.oasis.opendocument";
    let kinds = [
        ("application/pdf".to_owned(), "document.pdf"),
        (format!("{OFFICE}.wordprocessingml.document"), "document.docx"),
        (format!("{OFFICE}.presentationml.presentation"), "document.pptx"),
        (format!("{OFFICE}.spreadsheetml.sheet; charset=utf-8"), "document.xlsx"),
        (format!("{OPEN}.text"), "document.odt"),
        (format!("{OPEN}.presentation"), "document.odp"),
        (format!("{OPEN}.spreadsheet"), "document.ods"),
        ("application/rtf".to_owned(), "document.rtf"),
        ("text/rtf".to_owned(), "document.rtf"),
        ("application/epub+zip".to_owned(), "document.epub"),
        ("application/xhtml+xml".to_owned(), "PK words"),
        ("image/svg+xml".to_owned(), "PK words"),
        ("text/plain".to_owned(), "PK words"),
    ];
    for (media, expected) in kinds {
        let headers = [("content-type", media.clone())];
        let page = get(async move || (headers.clone(), "<p>PK words</p>"));
        let address = serve(Router::new().route("/download", page)).await;
        let url = format!("http://{address}/download");
        let page = web(&[&address], None).with_documents(Arc::new(Named)).fetch(&url).await;
        assert!(page.unwrap().text.contains(expected), "{media}");
        let is_page = expected == "PK words";
        let alone = web(&[&address], None).fetch(&url).await;
        assert!(alone.is_ok() == is_page, "{media} without a parser: {alone:?}");
    }
}

/// S3.07
#[tokio::test]
async fn requests_to_one_host_have_a_pause_between_them() {
    let address = serve(Router::new().fallback(get(async || "text"))).await;
    let limits = Limits { pause: Duration::from_millis(300), ..Limits::default() };
    let allowed = Addresses::allowing(std::slice::from_ref(&address));
    let web = Web::open(allowed, limits, None, false).unwrap();
    let urls = ["a", "b", "c"].map(|path| format!("http://{address}/{path}"));
    let started = Instant::now();
    let (a, b, c) = tokio::join!(web.fetch(&urls[0]), web.fetch(&urls[1]), web.fetch(&urls[2]));
    assert!(a.is_ok() && b.is_ok() && c.is_ok(), "{a:?} {b:?} {c:?}");
    assert!(started.elapsed() >= Duration::from_millis(600), "{:?}", started.elapsed());
}

/// S3.07
#[tokio::test]
async fn a_fetch_ends_in_its_time_however_often_it_is_redirected() {
    async fn slow() -> (StatusCode, [(&'static str, &'static str); 1]) {
        tokio::time::sleep(Duration::from_millis(400)).await;
        (StatusCode::FOUND, [("location", "/on")])
    }
    let router = Router::new().route("/on", get(slow)).route("/", get(slow));
    let address = serve(router).await;
    let limits =
        Limits { pause: Duration::ZERO, time: Duration::from_secs(1), ..Limits::default() };
    let allowed = Addresses::allowing(std::slice::from_ref(&address));
    let web = Web::open(allowed, limits, None, false).unwrap();
    let ended = web.fetch(&format!("http://{address}/")).await;
    assert!(matches!(ended, Err(Error::Timeout { .. })), "{ended:?}");
}

/// S3.07
#[tokio::test]
async fn redirects_robots_and_odd_answers_are_refused_by_name() {
    let secret = serve(Router::new().route("/", get(|| async { "secret" }))).await;
    let to_secret = format!("http://{secret}/");
    let router = Router::new()
        .route("/robots.txt", get(|| async { "User-agent: *\nDisallow: /private\n" }))
        .route("/private/x", get(|| async { "x" }))
        .route(
            "/inside",
            get(move || async move { (StatusCode::FOUND, [("location", to_secret)]) }),
        )
        .route("/file", get(|| async { (StatusCode::FOUND, [("location", "file:///etc/passwd")]) }))
        .route("/circle", get(|| async { (StatusCode::FOUND, [("location", "/circle")]) }))
        .route("/image", get(|| async { ([("content-type", "image/png")], "x") }))
        .route("/long", get(|| async { "x".repeat(1_000_000) }));
    let address = serve(router).await;
    let web = web(&[&address], None);
    let fetch = async |path: &str| web.fetch(&format!("http://{address}{path}")).await;
    assert!(matches!(fetch("/private/x").await, Err(Error::Robots(_))));
    assert!(matches!(fetch("/inside").await, Err(Error::NotPublic(_))));
    assert!(matches!(fetch("/file").await, Err(Error::NotAnAddress(_))));
    assert!(matches!(fetch("/circle").await, Err(Error::Redirects { .. })));
    assert!(matches!(fetch("/image").await, Err(Error::Media { .. })));
    assert!(matches!(fetch("/nothing").await, Err(Error::Status { status: 404, .. })));
    let long = fetch("/long").await.unwrap();
    assert!(long.truncated && long.text.len() <= 20_000);
    assert!(matches!(
        self::web(&[], None).fetch(&format!("http://{address}/")).await,
        Err(Error::NotPublic(_))
    ));
    let named = self::web(&[], None).fetch("http://nowhere.invalid/").await;
    assert!(matches!(named, Err(Error::NotPublic(_) | Error::Unreachable { .. })), "{named:?}");
}

/// S3.07
#[tokio::test]
async fn a_page_is_read_in_its_character_set_from_any_declaration() {
    let cases: [(&str, &[u8], &str); 8] = [
        ("Shift_JIS", b"\x92\xaa\x82\xcc\x96\x9e\x82\xbf\x88\xf8\x82\xab", "潮の満ち引き"),
        ("gb2312", b"\xb3\xb1\xcf\xab\xd5\xc7\xc2\xe4", "潮汐涨落"),
        ("windows-1251", b"\xcf\xf0\xe8\xeb\xe8\xe2 \xe8 \xee\xf2\xeb\xe8\xe2", "Прилив и отлив"),
        ("euc-kr", b"\xc1\xb6\xbc\xf6 \xb0\xa3\xb8\xb8", "조수 간만"),
        ("iso-2022-kr", b"\x1b$)C\x0eA6<v\x0f \x0e0#88\x0f", "조수 간만"),
        ("hz-gb-2312", b"~{31O+UGBd~}", "潮汐涨落"),
        ("iso-2022-jp", b"\x1b$BD,$NK~$A0z$-\x1b(B", "潮の満ち引き"),
        ("iso-8859-1", b"Flut f\xfcr M\xfcller", "Flut für Müller"),
    ];
    let mut router = Router::new();
    for (name, bytes, text) in cases {
        // Named by the server, by the page, by neither, and wrongly.
        for (way, header, meta) in [
            ("header", format!("text/html; charset=\"{name}\""), String::new()),
            ("meta", "text/html".to_owned(), format!("<meta charset=\"{name}\">")),
            ("neither", "text/html".to_owned(), String::new()),
            ("wrong", "text/html; charset=utf-8".to_owned(), String::new()),
        ] {
            let head = format!("<html><head>{meta}<title>x</title></head><body><p>");
            let is_declared = way == "header" || way == "meta";
            let line = [bytes, b". "].concat().repeat(if is_declared { 1 } else { 20 });
            let page = [head.as_bytes(), &line, b"</p></body></html>"].concat();
            let answer = move || async move { ([("content-type", header)], page) };
            router = router.route(&format!("/{way}/{name}"), get(answer));
        }
        let whole = format!("<html><meta charset=\"{name}\"><p>{text}</p></html>");
        router = router.route(&format!("/utf-8/{name}"), get(|| async { Html(whole) }));
    }
    let address = serve(router).await;
    let web = web(&[&address], None);
    for (name, _, text) in cases {
        for way in ["header", "meta", "neither", "wrong", "utf-8"] {
            let page = web.fetch(&format!("http://{address}/{way}/{name}")).await.unwrap();
            assert!(page.text.contains(text), "{name} by {way}: {}", page.text);
        }
    }
}

/// S3.07
#[tokio::test]
async fn a_search_is_spoken_in_the_wire_of_its_provider() {
    let searxng = r#"{"results": [{"title": "Sea", "url": "https://sea.test/", "content": "Salt", "publishedDate": "2024-01-02"},
                                  {"title": "Bad", "url": "javascript:alert(1)"}], "unresponsive_engines": []}"#;
    let brave = r#"{"web": {"results": [{"title": "Sea", "url": "https://sea.test/", "description": "Salt", "extra_snippets": ["more"]}]}}"#;
    let router = Router::new()
        .route(
            "/search",
            get(move || async move { ([("content-type", "application/json")], searxng) }),
        )
        .route("/res/v1/web/search", get(move || async move { brave }))
        .route(
            "/empty/search",
            get(|| async { r#"{"results": [], "unresponsive_engines": [["wiki", "timeout"]]}"# }),
        )
        .route("/closed/search", get(|| async { StatusCode::FORBIDDEN }));
    let tavily =
        r#"{"results": [{"title": "Sea", "url": "https://sea.test/", "content": "Salt of it"}]}"#;
    let asked = post(move |headers: HeaderMap, Json(body): Json<Value>| async move {
        let is_right = headers["authorization"] == "Bearer key-1"
            && body["topic"] == "news"
            && body["query"] == "sea";
        if is_right { tavily.into_response() } else { StatusCode::BAD_REQUEST.into_response() }
    });
    let address = serve(router.route("/tavily/search", asked)).await;
    let provider =
        |wire, path: &str| Provider::new(wire, &format!("http://{address}{path}"), None).unwrap();
    let hits =
        web(&[], Some(provider(Wire::Searxng, ""))).search("sea", Kind::Basic, 5).await.unwrap();
    assert_eq!(
        (hits.len(), hits[0].snippet.as_str(), hits[0].published.as_deref()),
        (1, "Salt", Some("2024-01-02"))
    );
    let hits =
        web(&[], Some(provider(Wire::Brave, ""))).search("sea", Kind::Deep, 5).await.unwrap();
    assert_eq!(hits[0].snippet, "Salt\nmore");
    let key = Some("key-1".to_owned().into());
    let paid = Provider::new(Wire::Tavily, &format!("http://{address}/tavily"), key).unwrap();
    let hits = web(&[], Some(paid)).search("sea", Kind::News, 5).await.unwrap();
    assert_eq!(hits[0].snippet, "Salt of it");
    let failed = web(&[], Some(provider(Wire::Searxng, "/empty")))
        .search("sea", Kind::News, 5)
        .await
        .unwrap_err();
    assert!(failed.to_string().contains("wiki"), "{failed}");
    let failed = web(&[], Some(provider(Wire::Searxng, "/closed")))
        .search("sea", Kind::Basic, 5)
        .await
        .unwrap_err();
    assert!(failed.to_string().contains("search.formats"), "{failed}");
    assert!(matches!(web(&[], None).search("sea", Kind::Basic, 5).await, Err(Error::NoProvider)));
}
