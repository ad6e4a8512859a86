//! The trace on a terminal.

use clap::Parser;
use perihelion::cli::trace;

use super::{Demo, settings};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: trace::Args,
}

async fn shown(demo: &Demo, more: &[&str]) -> String {
    let thread = demo.thread.to_string();
    let line = Line::parse_from(["trace", &thread].iter().chain(more));
    trace::run(demo.store().as_ref(), &demo.settings, &line.args).await.unwrap()
}

/// Takes out what differs from run to run: ids, durations, token counts of prompts with dates in them.
fn redacted(text: &str) -> String {
    let rules = [
        (r"[0-9a-f]{8}-[0-9a-f-]{27}", "THREAD"),
        (r"\b[0-9a-f]{32}\b", "TRACE"),
        (r"\b\d+ ms\b|\b\d+\.\d s\b", "TIME"),
        (r"\d+ → \d+ tokens", "TOKENS"),
    ];
    rules.iter().fold(text.to_owned(), |text, (pattern, name)| {
        regex::Regex::new(pattern).unwrap().replace_all(&text, *name).into_owned()
    })
}

/// X7: no backend is needed to read a run.
#[tokio::test]
async fn a_run_is_drawn_as_a_tree_with_thoughts_calls_and_verdicts() {
    let demo = Demo::open(settings(&[])).await;
    demo.ask(demo.runtime.run_options()).await;
    insta::assert_snapshot!(redacted(&shown(&demo, &[]).await));
    let json: serde_json::Value =
        serde_json::from_str(&shown(&demo, &["--run", "1", "--json"]).await).unwrap();
    assert_eq!(json["spans"][0]["kind"], "workflow");
    assert_eq!(json["thread_id"], demo.thread.to_string());
    assert!(shown(&demo, &["--otlp"]).await.contains("resourceSpans"));
    demo.runtime.close().await;
}
