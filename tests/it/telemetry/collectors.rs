//! What collectors do, over HTTP and gRPC, and what that costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderName, LOCATION};
use perihelion::config::{Settings, TraceProtocol};
use perihelion::runtime::RunStatusView;
use perihelion::telemetry::ExportCounts;

use super::receiver::{Collector, Manner};
use super::{Demo, settings};

async fn over(protocol: TraceProtocol, manner: Manner) -> (Collector, Settings) {
    let (collector, url) = match protocol {
        TraceProtocol::Http => Collector::start(manner).await,
        TraceProtocol::Grpc => Collector::start_grpc(manner).await,
    };
    let mut settings = settings(&[]);
    settings.traces.otlp_endpoint = Some(url);
    settings.traces.transport.protocol = protocol;
    settings.traces.transport.headers = vec![("x-scope".into(), "perihelion".to_owned().into())];
    (collector, settings)
}

/// Runs the demo once and returns what became of its trace.
async fn counted(settings: Settings) -> ExportCounts {
    let demo = Demo::open(settings).await;
    let report = demo.ask(demo.runtime.run_options()).await;
    assert_eq!(report.status, RunStatusView::Done);
    let counts = demo.runtime.flush_exports().await.unwrap();
    demo.runtime.close().await;
    counts
}

const ARRIVED: ExportCounts = ExportCounts { delivered: 1, failed: 0, rejected_spans: 0 };

/// X7
#[tokio::test]
async fn a_grpc_collector_gets_the_same_spans_compressed_with_headers() {
    let (collector, settings) = over(TraceProtocol::Grpc, Manner::default()).await;
    let demo = Demo::open(settings).await;
    demo.ask(demo.runtime.run_options()).await;
    let trace = demo.trace(None).await;
    demo.runtime.close().await;
    let sent: Vec<_> = collector.spans().into_iter().map(|span| span.span_id).collect();
    let drawn: Vec<_> = trace.spans.iter().map(|span| span.span_id.to_bytes().to_vec()).collect();
    assert_eq!(sent, drawn);
    let headers = &collector.headers()[0];
    assert_eq!(
        (&headers["x-scope"], &headers["grpc-encoding"]),
        (&"perihelion".parse().unwrap(), &"gzip".parse().unwrap())
    );
}

#[tokio::test]
async fn requests_over_http_are_compressed_unless_that_is_switched_off() {
    let (collector, mut settings) = over(TraceProtocol::Http, Manner::default()).await;
    assert_eq!(counted(settings.clone()).await, ARRIVED);
    settings.traces.transport.compression = perihelion::config::Compression::None;
    assert_eq!(counted(settings).await, ARRIVED);
    let encodings: Vec<_> =
        collector.headers().iter().map(|one| one.contains_key("content-encoding")).collect();
    assert_eq!(encodings, [true, false]);
}

#[tokio::test]
async fn a_collector_that_starts_late_gets_the_trace() {
    for protocol in [TraceProtocol::Http, TraceProtocol::Grpc] {
        let (_collector, settings) = over(protocol, Manner { late: 2, ..Manner::default() }).await;
        assert_eq!(counted(settings).await, ARRIVED, "{protocol:?}");
    }
}

/// X7
#[tokio::test]
async fn a_span_that_the_collector_cannot_read_costs_itself_and_no_other() {
    for protocol in [TraceProtocol::Http, TraceProtocol::Grpc] {
        let dislikes = Some("execute_tool list_tables");
        let manner = Manner { dislikes, ..Manner::default() };
        let (collector, settings) = over(protocol, manner).await;
        let demo = Demo::open(settings).await;
        demo.ask(demo.runtime.run_options()).await;
        let spans = demo.trace(None).await.spans.len();
        let counts = demo.runtime.flush_exports().await.unwrap();
        demo.runtime.close().await;
        assert_eq!(counts, ExportCounts { rejected_spans: 1, ..ARRIVED }, "{protocol:?}");
        assert_eq!(collector.spans().len(), spans - 1, "{protocol:?}");
    }
}

/// Starts a web server with one answer to everything; returns its address and how often it was asked.
async fn web_server(
    status: StatusCode,
    header: (HeaderName, String),
    body: &'static str,
) -> (String, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let answer = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let headers = [header.clone()];
        async move { (status, headers, body) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, asked)
}

/// X7: the headers are keys for the collector, and a page of a login is no collector.
#[tokio::test]
async fn a_redirect_is_not_followed_and_a_web_page_is_no_collector() {
    let page = "<!doctype html><title>Log in</title>";
    let (login, asked) =
        web_server(StatusCode::OK, (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()), page)
            .await;
    let redirected = (LOCATION, format!("{login}/login"));
    let (proxy, _) = web_server(StatusCode::FOUND, redirected, "").await;
    let (in_json, _) =
        web_server(StatusCode::OK, (CONTENT_TYPE, "application/json".to_owned()), "{}").await;
    let failed = ExportCounts { delivered: 0, failed: 1, rejected_spans: 0 };
    for (address, expected, requests) in
        [(proxy, failed, 0), (in_json, ARRIVED, 0), (login, failed, 1)]
    {
        let mut settings = settings(&[]);
        settings.traces.otlp_endpoint = Some(address);
        settings.traces.transport.headers = vec![("x-api-key".into(), "s3cret".to_owned().into())];
        assert_eq!(counted(settings).await, expected);
        assert_eq!(asked.load(Ordering::Relaxed), requests);
    }
}

#[tokio::test]
async fn a_trace_that_the_collector_cannot_read_counts_as_failed() {
    for (protocol, status) in
        [(TraceProtocol::Http, 400), (TraceProtocol::Grpc, 400), (TraceProtocol::Grpc, 401)]
    {
        let manner = Manner { status: Some(status), ..Manner::default() };
        let (_collector, settings) = over(protocol, manner).await;
        assert_eq!(
            counted(settings).await,
            ExportCounts { delivered: 0, failed: 1, rejected_spans: 0 }
        );
    }
}
