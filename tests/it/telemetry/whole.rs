//! One whole trace, whatever happened to the process meanwhile.

use perihelion::checkpoint::Claim;
use perihelion::config::TraceScope;
use std::time::Duration;

use perihelion::graph::RunEvent;
use perihelion::ids::ThreadId;
use perihelion::runner::RunOptions;
use perihelion::swarm::GraphState;
use perihelion::telemetry::{About, SpanId, TraceId, View, Which, bill, project, read};
use tokio::sync::mpsc;

use super::{Demo, assert_whole, rows_of, settings, shape};

/// S1.12, X7
#[tokio::test]
async fn the_demos_trace_reads_as_its_graph() {
    let demo = Demo::open(settings(&[])).await;
    let report = demo.ask(demo.runtime.run_options()).await;
    let trace = demo.trace(None).await;
    assert_whole(&trace.spans);
    insta::assert_snapshot!(shape(&trace.spans));
    let About::Workflow { usage, answer, .. } = &trace.spans[0].about else { panic!() };
    assert_eq!((*usage, answer), (report.usage, &report.answer), "as the run itself counted");
    assert!(trace.spans.iter().all(|span| !span.open));
    demo.runtime.close().await;
}

/// Resolves when the second tool result of the run is told.
async fn in_the_middle(mut events: mpsc::Receiver<RunEvent<GraphState>>) {
    let mut seen = 0;
    while let Some(event) = events.recv().await {
        if let RunEvent::Published { payload, .. } = &event
            && payload["type"] == "tool_result"
        {
            seen += 1;
            if seen == 2 {
                return;
            }
        }
    }
    panic!("the run ended too early");
}

async fn uninterrupted() -> String {
    let demo = Demo::open(settings(&[])).await;
    demo.ask(demo.runtime.run_options()).await;
    let shape = shape(&demo.trace(None).await.spans);
    demo.runtime.close().await;
    shape
}

async fn assert_fixed(demo: &Demo) {
    let whole = demo.trace(None).await;
    assert_whole(&whole.spans);
    assert_eq!(shape(&whole.spans), uninterrupted().await);
    assert_eq!(whole.head.trace_id, TraceId::of_run(demo.thread, 1));
    assert_eq!(whole.spans[0].span_id, SpanId::root(demo.thread, 1));
    let About::Workflow { runs, .. } = &whole.spans[0].about else { panic!() };
    assert_eq!(runs.iter().map(|run| run.number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(demo.trace(Some(1)).await.spans, whole.spans, "either run leads to it");
    let dump = demo.store().export(demo.thread).await.unwrap();
    let view = View { content: true, rounds: Some(3), scope: TraceScope::Run };
    let mut from_dump = project(&rows_of(dump), 2, view).unwrap();
    bill(&mut from_dump, &demo.settings.models.price_list());
    assert_eq!(from_dump, whole.spans, "from the whole thread too");
}

/// S1.12, X2
#[tokio::test]
async fn a_run_that_was_stopped_and_resumed_is_one_trace() {
    let demo = Demo::open(settings(&[])).await;
    let (events, listener) = mpsc::channel(1024);
    let options = RunOptions { events: Some(events), ..demo.runtime.run_options() };
    let stop = options.cancel.clone();
    let (report, ()) = tokio::join!(demo.ask(options), async {
        in_the_middle(listener).await;
        stop.cancel();
    });
    assert!(report.answer.is_none());
    let half = demo.trace(None).await;
    assert_whole(&half.spans);
    assert!(half.spans[0].open, "a resume may continue with it");
    demo.runtime.resume(demo.thread, demo.runtime.run_options()).await.unwrap();
    assert_fixed(&demo).await;
    let whole = demo.trace(None).await;
    for span in half.spans.iter().filter(|span| !span.open) {
        assert!(whole.spans.contains(span), "what was final has changed: {span:?}");
    }
    demo.runtime.close().await;
}

/// S1.12, X2
#[tokio::test]
async fn a_run_whose_process_died_and_that_was_resumed_is_one_trace() {
    let demo = Demo::open(settings(&[])).await;
    let (events, listener) = mpsc::channel(1024);
    let options = RunOptions { events: Some(events), ..demo.runtime.run_options() };
    tokio::select! {
        _ = demo.ask(options) => panic!("the run ended too early"),
        () = in_the_middle(listener) => {}
    }
    // The lease of a dead process runs out.
    demo.store().claim(Claim::new(demo.thread, "nobody", Duration::ZERO).forced()).await.unwrap();
    assert_whole(&demo.trace(None).await.spans);
    demo.runtime.resume(demo.thread, demo.runtime.run_options()).await.unwrap();
    assert_fixed(&demo).await;
    demo.runtime.close().await;
}

#[tokio::test]
async fn a_second_question_opens_a_trace_linked_to_the_first() {
    let demo = Demo::open(settings(&[])).await;
    demo.ask(demo.runtime.run_options()).await;
    demo.ask(demo.runtime.run_options()).await;
    let first = demo.trace(Some(1)).await;
    let second = demo.trace(None).await;
    assert_whole(&second.spans);
    assert_ne!(first.head.trace_id, second.head.trace_id);
    assert!(first.spans[0].links.is_empty());
    let link = &second.spans[0].links[0];
    assert_eq!((link.trace_id, link.span_id), (first.head.trace_id, first.spans[0].span_id));
    let (rows, run) = read(demo.store().as_ref(), demo.thread, Which::Newest).await.unwrap();
    let of_thread = View { scope: TraceScope::Thread, ..View::default() };
    let spans = project(&rows, run, of_thread).unwrap();
    assert_eq!(spans[0].trace_id.to_string(), demo.thread.0.simple().to_string());
    demo.runtime.close().await;
}

#[tokio::test]
async fn a_thread_or_run_that_is_not_there_is_named() {
    let demo = Demo::open(settings(&[])).await;
    let traces = demo.runtime.traces();
    let unknown = ThreadId::new();
    let trace = traces.read(unknown, None);
    let error = trace.await.unwrap_err();
    assert!(error.is_usage() && error.to_string().contains(&unknown.to_string()), "{error}");
    demo.runtime.runner().create(demo.thread, None).await.unwrap();
    let trace = traces.read(demo.thread, None);
    let error = trace.await.unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("has not run yet"), "{error}");
    demo.ask(demo.runtime.run_options()).await;
    let trace = traces.read(demo.thread, Some(7));
    let error = trace.await.unwrap_err();
    assert!(
        error.is_usage() && error.to_string().ends_with("has no run 7; its runs are 1 to 1"),
        "{error}"
    );
    demo.runtime.close().await;
}
