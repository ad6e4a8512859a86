//! What pages show of the demo is what the program prints, apart from times, dates and IDs (X8).

use std::path::Path;

use perihelion::llm::scripted::Script;
use regex::Regex;

use super::world::{Ended, World, masked};

const PAGES: [&str; 3] = ["README.md", "docs/guides/history.md", "docs/guides/traces.md"];
const BEGIN: &str = "<!-- demo output -->";
const END: &str = "<!-- end of demo output -->";

/// The prices of `docs/guides/traces.md`.
const PRICES: &str = "[models.prices.scripted]\ninput_per_mtok = 2.0\noutput_per_mtok = 8.0\n";

/// Replaces what differs from run to run, and joins the columns of tables.
fn steady(text: &str) -> String {
    let rules = [
        (r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID"),
        // The bytes of a step contain measured times.
        (r"(\d+\s+)?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\dZ", "TIME"),
        (r"\d{4}-\d\d-\d\d( \d\d\b)?", "DATE"),
        (r"[+-]?\b\d+(\.\d+)? ?(ms|s)\b", "SPAN"),
        (r"\s+", " "),
    ];
    masked(text, &rules)
}

/// Returns the lines of output between the marks of a page, without commands and without what depends on timing.
fn shown(page: &str) -> Vec<&str> {
    let mut all = Vec::new();
    for marked in page.split(BEGIN).skip(1) {
        let (marked, _) = marked.split_once(END).unwrap();
        let fenced = marked.split("```").skip(1).step_by(2);
        let lines = fenced.flat_map(|block| block.lines().skip(1));
        let is_timing = |line: &&str| {
            let of_diff =
                ["step 4 mcp", "steps 5 to 6"].iter().any(|start| line.starts_with(start));
            of_diff || line.contains("elapsed_ms") || line.contains('▸')
        };
        all.extend(lines.filter(|line| !line.trim().is_empty() && !line.starts_with("$ ")));
        all.retain(|line| !is_timing(line));
    }
    all
}

/// S1.13: a reader sees on the screen what the page shows.
#[tokio::test]
async fn pages_show_what_the_demo_prints() {
    let world = World::new(Script::new()).await;
    world.write("perihelion.toml", PRICES);
    let mut printed = String::new();
    let mut add = |ended: Ended| {
        printed.push_str(&format!("{}\n{}\n", ended.stderr, ended.stdout));
    };
    add(world.run(&["demo"]).await.code(0));
    let list = world.run(&["threads", "--json"]).await.code(0).json();
    let thread = list[0]["thread_id"].as_str().unwrap();
    add(world.run(&["threads", "history", thread]).await.code(0));
    add(world.run(&["threads", "state", thread, "--at", "3"]).await.code(0));
    add(world.run(&["threads", "fork", thread, "--at", "3", "--thread", "what-if"]).await.code(0));
    world.run(&["resume", "what-if", "--quiet"]).await.code(0);
    add(world.run(&["replay", thread]).await.code(0));
    // Calls take more or less time: 0 for none that differs.
    add(world.run(&["diff", thread, "what-if"]).await);
    add(world.run(&["threads", "export", thread, "--output", "tz.jsonl"]).await.code(0));
    add(world.run(&["trace", thread]).await.code(0));
    add(world.run(&["trace", thread, "--follow"]).await.code(0));
    let killed = world.run(&["demo", "--quiet", "--crash"]).await;
    assert_eq!(killed.status.code(), None, "{killed:?}");
    let list = world.run(&["threads", "--status", "busy", "--json"]).await.code(0).json();
    add(world
        .run(&["trace", "diff", list[0]["thread_id"].as_str().unwrap(), thread])
        .await
        .code(1));

    let printed = steady(&printed);
    let numbers = Regex::new(r"[\d.]+").unwrap();
    let shape = |text: &str| numbers.replace_all(text, "N").into_owned();
    let mut problems = Vec::new();
    for page in PAGES {
        let text =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
        let lines = shown(&text);
        assert!(lines.len() >= 10, "{page}: {lines:?}");
        for line in lines {
            let wanted = steady(line.trim_end_matches('…'));
            if !printed.contains(wanted.trim()) {
                let is_figure = shape(&printed).contains(shape(wanted.trim()).as_str());
                let what = if is_figure { "another figure is printed" } else { "not printed" };
                problems.push(format!("{page}: {what}: {line}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}\n\nprinted:\n{printed}", problems.join("\n"));
}
