//! `perihelion trace`, and the traces that the program sends.

use perihelion::llm::scripted::Script;

use super::world::{World, masked, reading};
use crate::telemetry::receiver::{Collector, Manner};

/// Takes out what differs from run to run: ids, durations, token counts of prompts with dates in them.
fn redacted(text: &str) -> String {
    let rules = [
        (r"[0-9a-f]{8}-[0-9a-f-]{27}", "THREAD"),
        (r"\b[0-9a-f]{32}\b", "TRACE"),
        (r"\b\d+ ms\b|\b\d+\.\d s\b", "TIME"),
        (r"\d+ → \d+( tokens)?", "TOKENS"),
    ];
    let text = masked(text, &rules);
    // The table's columns are as wide as what stood in them.
    let (tree, table) = text.split_once("NODE").unwrap();
    let table: Vec<_> =
        table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    let lines: Vec<_> = table.into_iter().map(|words| words.join(" ")).collect();
    format!("{}\nNODE {}", tree.trim_end(), lines.join("\n"))
}

/// X7: no backend is needed to read a run.
#[tokio::test]
async fn a_run_is_drawn_as_a_tree_with_thoughts_calls_and_verdicts() {
    let world = World::new(Script::new()).await;
    let report = world.run(&["demo", "--quiet", "--json"]).await.code(0).json();
    let thread = report["thread_id"].as_str().unwrap();
    let whole = world.run(&["trace", thread]).await.code(0);
    insta::assert_snapshot!(redacted(&whole.stdout));
    let json = world.run(&["trace", thread, "--run", "1", "--json"]).await.code(0).json();
    assert_eq!(
        (&json["spans"][0]["kind"], &json["thread_id"]),
        (&"workflow".into(), &thread.into())
    );
    let otlp = world.run(&["trace", thread, "--otlp"]).await.code(0).json();
    let spans = &otlp["resourceSpans"][0]["scopeSpans"][0]["spans"];
    assert_eq!(spans.as_array().unwrap().len(), json["spans"].as_array().unwrap().len());
    assert!(!otlp.to_string().contains("SELECT"), "content is not for others unless asked for");
}

/// X7, S1.12: `kill -9` in the middle of a step leaves no gap and no second copy in the trace.
#[tokio::test]
async fn a_killed_and_resumed_run_is_drawn_like_an_uninterrupted_run() {
    let world = World::new(Script::new()).await;
    let report = world.run(&["demo", "--quiet", "--json"]).await.code(0).json();
    let unhurt = world.run(&["trace", report["thread_id"].as_str().unwrap()]).await.code(0);

    let killed = world.run(&["demo", "--quiet", "--crash"]).await;
    assert_eq!(killed.status.code(), None, "{killed:?}");
    let list = world.run(&["threads", "--status", "busy", "--json"]).await.code(0).json();
    let thread = list[0]["thread_id"].as_str().unwrap();
    let half = world.run(&["trace", thread]).await.code(0).stdout;
    assert!(half.contains("run 1 not finished") && half.contains("REJECTED"), "{half}");
    world.run(&["resume", thread, "--quiet"]).await.code(0);
    let whole = world.run(&["trace", thread]).await.code(0);
    assert!(whole.stdout.contains("run 1 crashed, run 2 done"), "{}", whole.stdout);
    let fixed = redacted(&whole.stdout).replace("run 1 crashed, run 2 done", "run 1 done");
    assert_eq!(fixed, redacted(&unhurt.stdout));
}

#[tokio::test]
async fn a_thread_or_run_that_is_not_there_is_named_as_it_was_called() {
    let world = World::new(reading()).await;
    world.run(&["trace", "nowhere"]).await.code(2).says("nowhere");
    world.run(&["run", "What is it?", "--thread", "t", "--quiet"]).await.code(0);
    world
        .run(&["trace", "t", "--run", "7"])
        .await
        .code(2)
        .says("has no run 7; its runs are 1 to 1");
}

/// A process that has nothing left to do still delivers its trace, with what the environment says.
#[tokio::test]
async fn the_trace_is_sent_before_the_program_ends() {
    let (collector, url) = Collector::start(Manner::default()).await;
    let mut world = World::new(reading()).await;
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    world.set("PERIHELION_TRACES_HEADERS_ENV", "COLLECTOR_HEADERS");
    world.set("COLLECTOR_HEADERS", "Authorization=Basic cGs6c2s=,x-version=4");
    world.run(&["run", "What is it?", "--thread", "t", "--quiet"]).await.code(0);
    let names: Vec<String> = collector.spans().into_iter().map(|span| span.name).collect();
    assert!(names.contains(&"execute_tool read".to_owned()), "{names:?}");
    let headers = &collector.headers()[0];
    assert_eq!(
        (&headers["authorization"], &headers["x-version"]),
        (&"Basic cGs6c2s=".parse().unwrap(), &"4".parse().unwrap())
    );
}

#[tokio::test]
async fn a_collector_that_is_down_causes_only_a_warning() {
    let (_collector, url) =
        Collector::start(Manner { status: Some(403), ..Manner::default() }).await;
    let mut world = World::new(reading()).await;
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    let done = world.run(&["run", "What is it?", "--quiet"]).await.code(0);
    assert_eq!(done.stdout, "It is 42 [1].\n");
    assert_eq!(done.stderr.matches("a trace was not exported").count(), 1, "{}", done.stderr);
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318");
    let refused = world.run(&["run", "What is it?"]).await.code(2);
    refused.says("OTEL_EXPORTER_OTLP_ENDPOINT").says("http://localhost:4318");
}
