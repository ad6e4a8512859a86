//! Traces that could not be delivered at first, and arrive later.

use std::sync::Arc;
use std::time::Duration;

use perihelion::checkpoint::{Claim, Fence, MemoryStore, Store};
use perihelion::config::{Settings, TraceProtocol};
use perihelion::demo;
use perihelion::graph::RunEvent;
use perihelion::ids::ThreadId;
use perihelion::runner::RunOptions;
use perihelion::runtime::{Runtime, Traces};
use perihelion::swarm::Request;
use perihelion::telemetry::ExportCounts;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;
use tokio::sync::mpsc;

use super::receiver::{Collector, Manner};
use super::{open, pool, settings};
use crate::store_suite::stores;

async fn collected(manner: Manner) -> (Collector, Settings) {
    let (collector, url) = Collector::start(manner).await;
    let mut settings = settings(&[]);
    settings.traces.otlp_endpoint = Some(url);
    (collector, settings)
}

async fn ask(runtime: &Runtime, thread: ThreadId) {
    let request = Request { question: demo::QUESTION.into(), ..Request::default() };
    runtime.ask(thread, None, request, runtime.run_options()).await.unwrap();
}

async fn drawn(
    store: &Arc<dyn Store>,
    settings: &Settings,
    thread: ThreadId,
    run: u32,
) -> Vec<Vec<u8>> {
    let trace = Traces::of(store, settings).read(thread, Some(run)).await;
    trace.unwrap().spans.iter().map(|span| span.span_id.to_bytes().to_vec()).collect()
}

fn sent(collector: &Collector) -> Vec<Vec<u8>> {
    collector.spans().into_iter().map(|span| span.span_id).collect()
}

async fn exports_pending(store: &Arc<dyn Store>) -> usize {
    store.outbox().unwrap().pending(None, 100).await.unwrap().len()
}

/// X7
#[tokio::test]
async fn undelivered_spans_are_delivered_once_by_the_next_process() {
    let home = tempfile::tempdir().unwrap();
    let away = Manner { status: Some(401), ..Manner::default() };
    let (collector, settings) = collected(away).await;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let thread = ThreadId::new();
    let runtime = open(settings.clone(), home.path(), Arc::clone(&store)).await;
    ask(&runtime, thread).await;
    ask(&runtime, thread).await;
    assert!(runtime.flush_exports().await.unwrap().failed >= 2);
    runtime.close().await;
    assert!(sent(&collector).is_empty());
    assert_eq!(exports_pending(&store).await, 1);

    collector.behave(Manner::default());
    let runtime = open(settings.clone(), home.path(), Arc::clone(&store)).await;
    let counts = runtime.flush_exports().await.unwrap();
    assert_eq!(counts, ExportCounts { delivered: 2, failed: 0, rejected_spans: 0 });
    runtime.close().await;
    let mut expected = drawn(&store, &settings, thread, 1).await;
    expected.extend(drawn(&store, &settings, thread, 2).await);
    assert_eq!(sent(&collector), expected);
    assert_eq!(exports_pending(&store).await, 0);

    let runtime = open(settings, home.path(), Arc::clone(&store)).await;
    assert_eq!(runtime.flush_exports().await.unwrap(), ExportCounts::default());
    runtime.close().await;
}

/// X7
#[tokio::test]
async fn a_damaged_thread_holds_up_no_other_thread_s_trace() {
    let home = tempfile::tempdir().unwrap();
    let away = Manner { status: Some(401), ..Manner::default() };
    let (collector, settings) = collected(away).await;
    let fixture = stores::sqlite().await;
    let url = fixture.url.clone().unwrap();
    let store = async || perihelion::checkpoint::open(&url).await.unwrap();
    let runtime = open(settings.clone(), home.path(), store().await).await;
    let [damaged, whole] = [ThreadId::new(), ThreadId::new()];
    ask(&runtime, damaged).await;
    ask(&runtime, whole).await;
    runtime.close().await;
    let options: SqliteConnectOptions = url.parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    let damage = sqlx::query("UPDATE step SET delta = x'00' WHERE thread_id = ?1 AND seq = 2");
    damage.bind(damaged.0).execute(&mut connection).await.unwrap();

    collector.behave(Manner::default());
    let runtime = open(settings.clone(), home.path(), store().await).await;
    let counts = runtime.flush_exports().await.unwrap();
    assert!(counts.delivered == 1 && counts.failed > 0, "{counts:?}");
    runtime.close().await;
    assert_eq!(sent(&collector), drawn(&store().await, &settings, whole, 1).await);
}

/// X7: nor does a trace that the collector refuses, whether it reads other ones or not.
#[tokio::test]
async fn a_trace_that_the_collector_refuses_holds_up_no_other_thread_s_trace() {
    for (protocol, status, is_first, is_given_up) in [
        (TraceProtocol::Http, 500, true, false),
        (TraceProtocol::Http, 403, true, false),
        (TraceProtocol::Grpc, 500, true, false),
        // Perhaps it can read nothing.
        (TraceProtocol::Http, 400, true, false),
        (TraceProtocol::Http, 400, false, true),
    ] {
        let home = tempfile::tempdir().unwrap();
        let away = Manner { status: Some(401), ..Manner::default() };
        let (collector, url) = match protocol {
            TraceProtocol::Http => Collector::start(away).await,
            TraceProtocol::Grpc => Collector::start_grpc(away).await,
        };
        let mut settings = settings(&[]);
        settings.traces.otlp_endpoint = Some(url);
        settings.traces.transport.protocol = protocol;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let runtime = open(settings.clone(), home.path(), Arc::clone(&store)).await;
        let threads = [ThreadId::new(), ThreadId::new()];
        for thread in threads {
            ask(&runtime, thread).await;
        }
        runtime.close().await;

        let [refused, taken] = if is_first { threads } else { [threads[1], threads[0]] };
        collector.behave(Manner { refuses: Some((refused, status)), ..Manner::default() });
        let runtime = open(settings.clone(), home.path(), Arc::clone(&store)).await;
        let counts = runtime.flush_exports().await.unwrap();
        runtime.close().await;
        let case = format!("{protocol:?} {status} {is_first}: {counts:?}");
        assert_eq!(counts.delivered, 1, "{case}");
        assert_eq!((counts.failed == 0, counts.rejected_spans > 0), (is_given_up, is_given_up));
        assert_eq!(sent(&collector), drawn(&store, &settings, taken, 1).await, "{case}");
        assert_eq!(exports_pending(&store).await, usize::from(!is_given_up), "{case}");
    }
}

/// X7
#[tokio::test]
async fn a_trace_that_a_new_question_closes_is_sent_again_under_its_final_ids() {
    let home = tempfile::tempdir().unwrap();
    let (collector, settings) = collected(Manner::default()).await;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let thread = ThreadId::new();
    let runtime = open(settings.clone(), home.path(), Arc::clone(&store)).await;
    ask(&runtime, thread).await;
    // A run that dies before its input is committed: the same question opens a trace of its own then.
    let info = store.claim(Claim::new(thread, "nobody", Duration::ZERO).forced()).await.unwrap();
    store
        .begin_run(Fence::new(thread, info.fence), perihelion::ids::RunId::new(), true)
        .await
        .unwrap();
    runtime.close().await;
    let runtime = open(settings.clone(), home.path(), Arc::clone(&store)).await;
    runtime.flush_exports().await.unwrap();
    let died = drawn(&store, &settings, thread, 2).await;
    assert!(!sent(&collector).contains(&died[0]), "it may still be resumed");

    ask(&runtime, thread).await;
    runtime.close().await;
    assert!(sent(&collector).contains(&died[0]), "its successor links to it");
    assert_eq!(drawn(&store, &settings, thread, 2).await, died);
}

/// Begins a run and lets its process die during a step, with a lease that has run out.
async fn die_during_a_run(runtime: Runtime, store: &Arc<dyn Store>, thread: ThreadId) {
    let (events, mut listener) = mpsc::channel(1024);
    let options = RunOptions { events: Some(events), ..runtime.run_options() };
    let request = Request { question: demo::QUESTION.into(), ..Request::default() };
    let called = async {
        while let Some(event) = listener.recv().await {
            if matches!(&event, RunEvent::Published { payload, .. } if payload["type"] == "tool_result")
            {
                return;
            }
        }
    };
    tokio::select! {
        _ = runtime.ask(thread, None, request, options) => panic!("the run ended too early"),
        () = called => {}
    }
    // The lease of a dead process runs out.
    store.claim(Claim::new(thread, "nobody", Duration::ZERO).forced()).await.unwrap();
    runtime.close().await;
}

/// X7, X2
#[tokio::test]
async fn a_run_whose_process_died_is_delivered_by_the_next_process() {
    let home = tempfile::tempdir().unwrap();
    let (collector, settings) = collected(Manner::default()).await;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let thread = ThreadId::new();
    let runtime = open(settings.clone(), home.path(), Arc::clone(&store)).await;
    die_during_a_run(runtime, &store, thread).await;
    assert!(sent(&collector).is_empty());

    let runtime = open(settings.clone(), home.path(), Arc::clone(&store)).await;
    assert_eq!(runtime.flush_exports().await.unwrap().delivered, 1);
    let half = sent(&collector);
    let final_ids = drawn(&store, &settings, thread, 1).await;
    assert!(!half.is_empty() && !half.contains(&final_ids[0]), "its root is not final yet");
    assert_eq!(exports_pending(&store).await, 1, "it may continue, so more of it is due");
    runtime.resume(thread, runtime.run_options()).await.unwrap();
    runtime.close().await;
    let whole = drawn(&store, &settings, thread, 2).await;
    assert_eq!(sent(&collector)[half.len()..], whole);
    assert_eq!(exports_pending(&store).await, 0);
}

/// X7: not every backend takes a half back.
#[tokio::test]
async fn a_process_that_resumes_a_run_sends_its_trace_once_and_whole() {
    let home = tempfile::tempdir().unwrap();
    let (collector, settings) = collected(Manner::default()).await;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let thread = ThreadId::new();
    let runtime = open(settings.clone(), home.path(), Arc::clone(&store)).await;
    die_during_a_run(runtime, &store, thread).await;

    let home = home.path().to_owned();
    let options = demo::Options { home, pool: pool(), ..Default::default() };
    let stage = demo::set(&options).await.unwrap();
    let kinds = perihelion::agents::kinds();
    let builder = Runtime::builder(settings.clone(), kinds).on_stage(stage).for_thread(thread);
    let runtime = builder.with_store(Arc::clone(&store)).open().await.unwrap();
    assert_eq!(runtime.flush_exports().await.unwrap(), ExportCounts::default());
    runtime.resume(thread, runtime.run_options()).await.unwrap();
    runtime.close().await;
    assert_eq!(sent(&collector), drawn(&store, &settings, thread, 2).await);
    assert_eq!(exports_pending(&store).await, 0);
}
