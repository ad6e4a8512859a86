//! What a collector gets, and what happens when it does not want it.

use std::collections::HashSet;

use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use perihelion::config::{Price, Settings};
use perihelion::graph::RunEvent;
use perihelion::runner::RunOptions;
use perihelion::runtime::RunStatusView;
use perihelion::telemetry::{About, ExportCounts};
use tokio::sync::mpsc;

use super::receiver::{Collector, Manner, attribute};
use super::{Demo, settings};

async fn collected(manner: Manner) -> (Collector, Settings) {
    let (collector, url) = Collector::start(manner).await;
    let mut settings = settings(&[]);
    settings.traces.otlp_endpoint = Some(url);
    settings.traces.transport.headers = vec![("x-scope".into(), "perihelion".to_owned().into())];
    (collector, settings)
}

/// S1.12
#[tokio::test]
async fn costs_of_calls_are_sent_once_under_the_names_that_backends_add_up() {
    let (collector, mut settings) = collected(Manner::default()).await;
    let price = Price { input_per_mtok: 2.0, output_per_mtok: 8.0, cached_per_mtok: None };
    settings.models.prices = [("scripted".to_owned(), price)].into();
    let demo = Demo::open(settings).await;
    let report = demo.ask(demo.runtime.run_options()).await;
    demo.runtime.close().await;
    let spans = collector.spans();
    let costs = |name: &str| -> Vec<f64> {
        let found = spans.iter().filter_map(|span| attribute(&span.attributes, name));
        found.map(|number| number.parse().unwrap()).collect()
    };
    let total = report.cost_usd.unwrap();
    let is_total = |numbers: Vec<f64>| (numbers.iter().sum::<f64>() - total).abs() < 1e-9;
    assert!(is_total(costs("gen_ai.usage.cost")) && is_total(costs("llm.cost.total")));
    let details = spans.iter().filter_map(|span| {
        let text = attribute(&span.attributes, "langfuse.observation.cost_details")?;
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["total"].as_f64()
    });
    assert!(is_total(details.collect()));
    let rolled_up = attribute(&spans[0].attributes, "perihelion.usage.cost").unwrap();
    assert!((rolled_up.parse::<f64>().unwrap() - total).abs() < 1e-9, "{rolled_up}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// S1.12, X7
#[tokio::test]
async fn a_collector_gets_the_tree_with_session_tokens_and_the_tags_people_filter_by() {
    let (collector, settings) = collected(Manner::default()).await;
    let demo = Demo::open(settings).await;
    let report = demo.ask(demo.runtime.run_options()).await;
    let trace = demo.trace(None).await;
    let thread = demo.thread.to_string();
    demo.runtime.close().await;

    let spans = collector.spans();
    let sent: Vec<_> = spans
        .iter()
        .map(|span| (hex(&span.trace_id), hex(&span.span_id), hex(&span.parent_span_id)))
        .collect();
    let expected: Vec<_> = trace
        .spans
        .iter()
        .map(|span| {
            let parent = span.parent.map(|id| id.to_string()).unwrap_or_default();
            (span.trace_id.to_string(), span.span_id.to_string(), parent)
        })
        .collect();
    assert_eq!(sent, expected);
    for span in &spans {
        for name in ["session.id", "gen_ai.conversation.id", "langfuse.session.id"] {
            assert_eq!(attribute(&span.attributes, name).as_ref(), Some(&thread));
        }
        assert!(
            attribute(&span.attributes, "perihelion.checkpoint.id").unwrap().starts_with(&thread)
        );
        assert!(attribute(&span.attributes, "openinference.span.kind").is_some(), "{}", span.name);
        assert!(attribute(&span.attributes, "langfuse.observation.type").is_some());
        assert!(span.attributes.len() <= 64, "{}: {}", span.name, span.attributes.len());
        let keys: HashSet<&String> = span.attributes.iter().map(|one| &one.key).collect();
        assert_eq!(keys.len(), span.attributes.len(), "an attribute twice: {}", span.name);
    }
    let total = |name| {
        let numbers = spans.iter().filter_map(|span| attribute(&span.attributes, name));
        numbers.map(|number| number.parse::<u64>().unwrap()).sum::<u64>()
    };
    assert_eq!(total("gen_ai.usage.input_tokens"), report.usage.input_tokens);
    assert_eq!(total("llm.token_count.completion"), report.usage.output_tokens);
    let agent = spans.iter().find(|span| span.name == "invoke_agent mcp_agent_sql").unwrap();
    let tag = |name| attribute(&agent.attributes, &format!("langfuse.observation.metadata.{name}"));
    assert_eq!(tag("agent_name").unwrap(), "mcp_agent_sql");
    assert_eq!(tag("reflection_status").unwrap(), "APPROVED");
    assert_eq!(tag("tool_usage").unwrap(), "sql.list_tables:1, sql.query:3");
    assert_eq!(tag("langgraph_node").unwrap(), "mcp_agent_sql");
    assert_eq!(tag("langgraph_step").unwrap(), "4");
    let failed = spans.iter().filter(|span| {
        span.status.as_ref().is_some_and(|status| status.code == StatusCode::Error as i32)
    });
    assert_eq!(failed.count(), 1, "the query with the wrong column");
    let verdicts: Vec<String> = spans
        .iter()
        .flat_map(|span| &span.events)
        .filter(|event| event.name == "gen_ai.evaluation.result")
        .filter_map(|event| attribute(&event.attributes, "gen_ai.evaluation.score.label"))
        .collect();
    assert_eq!(verdicts, ["REJECTED", "APPROVED", "FIXED"]);
    assert!(collector.headers().iter().all(|headers| headers["x-scope"] == "perihelion"));
}

#[tokio::test]
async fn the_printed_otlp_equals_the_export_to_a_collector() {
    let (collector, settings) = collected(Manner::default()).await;
    let demo = Demo::open(settings).await;
    demo.ask(demo.runtime.run_options()).await;
    let printed = demo.trace(None).await.to_otlp_json(&demo.settings).unwrap();
    demo.runtime.close().await;
    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let spans = &printed["resourceSpans"][0]["scopeSpans"][0]["spans"];
    let sent: Vec<_> = collector.spans().iter().map(|span| hex(&span.span_id)).collect();
    let shown: Vec<_> = spans.as_array().unwrap().iter().map(|span| &span["spanId"]).collect();
    assert_eq!(sent.iter().collect::<Vec<_>>(), shown);
}

#[tokio::test]
async fn a_collector_that_refuses_everything_is_counted_and_the_run_does_not_mind() {
    let (_collector, settings) = collected(Manner { status: Some(401), ..Manner::default() }).await;
    let demo = Demo::open(settings).await;
    let report = demo.ask(demo.runtime.run_options()).await;
    assert_eq!(report.status, RunStatusView::Done);
    let counts = demo.runtime.flush_exports().await.unwrap();
    assert_eq!(counts, ExportCounts { delivered: 0, failed: 1, rejected_spans: 0 });
    demo.runtime.close().await;
}

#[tokio::test]
async fn spans_that_a_collector_rejects_are_counted() {
    let (_collector, settings) = collected(Manner { rejects: 3, ..Manner::default() }).await;
    let demo = Demo::open(settings).await;
    demo.ask(demo.runtime.run_options()).await;
    let counts = demo.runtime.flush_exports().await.unwrap();
    assert_eq!(counts, ExportCounts { delivered: 1, failed: 0, rejected_spans: 3 });
    demo.runtime.close().await;
}

/// A backend that keeps the first version of a span and one that keeps the last see the same final spans.
#[tokio::test]
async fn a_span_is_sent_under_its_final_id_only_once_it_is_final() {
    let (collector, settings) = collected(Manner::default()).await;
    let demo = Demo::open(settings).await;
    let (events, mut listener) = mpsc::channel(1024);
    let options = RunOptions { events: Some(events), ..demo.runtime.run_options() };
    let stop = options.cancel.clone();
    tokio::join!(demo.ask(options), async {
        while let Some(event) = listener.recv().await {
            if matches!(&event, RunEvent::Published { payload, .. } if payload["type"] == "tool_result")
            {
                stop.cancel();
            }
        }
    });
    demo.runtime.flush_exports().await.unwrap();
    let first = collector.spans();
    let ids: HashSet<_> = first.iter().map(|span| span.span_id.clone()).collect();
    let orphans = first.iter().filter(|span| !ids.contains(&span.parent_span_id));
    assert_eq!(orphans.count(), 1, "only the root has no parent");
    demo.runtime.resume(demo.thread, demo.runtime.run_options()).await.unwrap();
    let whole = demo.trace(None).await;
    demo.runtime.close().await;
    let root = whole.spans[0].span_id.to_bytes();
    let versions: Vec<_> =
        collector.spans().into_iter().filter(|span| span.span_id == root).collect();
    assert_eq!(versions.len(), 1);
    let About::Workflow { runs, .. } = &whole.spans[0].about else { panic!() };
    assert_eq!(runs.len(), 2);
}
