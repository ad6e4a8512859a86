//! `perihelion trace` beyond the tree: following, comparing, sending again, pages, and serving.

use nix::sys::signal::Signal;
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Child;

use super::world::{World, ended, first, noting, reading, select, signal};
use crate::telemetry::receiver::{Collector, Manner};

/// Calls until QA is asked: supervisor, agent twice, reflector, supervisor, QA.
const CALLS: usize = 6;

fn hanging() -> Script {
    first(Rule::new(Reply::hang()).role(Role::Qa).nth(1), noting())
}

/// Reads a process's lines until one has the words in it; returns all of them.
async fn lines_until(child: &mut Child, words: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut out = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    while let Some(line) = out.next_line().await.unwrap() {
        lines.push(line);
        if lines.last().is_some_and(|line| line.contains(words)) {
            return lines;
        }
    }
    panic!("{words:?} was never said: {lines:#?}");
}

/// Reads what is left, and checks that the process ended well.
async fn rest(mut child: Child) -> String {
    let mut text = String::new();
    child.stdout.as_mut().unwrap().read_to_string(&mut text).await.unwrap();
    assert!(child.wait().await.unwrap().success(), "{text}");
    text
}

/// X7
#[tokio::test]
async fn a_run_in_another_process_is_followed_to_its_end() {
    let world = World::new(hanging()).await;
    let run = world.start(&["run", "Note it", "--thread", "n", "-q"]);
    world.model.wait_for_requests(CALLS).await;
    let mut follower = world.start(&["trace", "n", "--follow"]);
    let lines = lines_until(&mut follower, "supervisor → qa").await;
    let at = |words: &str| {
        let found = lines.iter().position(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("missing: {words}\n{lines:#?}"))
    };
    assert!(at("✓ supervisor → mcp_agent_notes") < at("✓ notes.append_note"));
    assert!(at("✓ notes.append_note") < at("reflect · APPROVED"));
    assert!(at("reflect · APPROVED") < at("✓ mcp_agent_notes · APPROVED"));
    // QA was asked and has not answered: nothing says that it has, or that the run is over.
    let output = lines.join("\n");
    assert!(!output.contains("✓ qa") && !output.contains("swarm ·"), "{output}");
    signal(&run, Signal::SIGINT);
    ended(run).await.code(1);
    let rest = rest(follower).await;
    assert!(rest.contains("swarm · run 1 stopped"), "{rest}");
    assert_eq!(rest.matches("append_note").count(), 0, "told twice: {rest}");
}

#[tokio::test]
async fn following_ends_when_the_process_that_ran_it_is_gone() {
    let world = World::new(hanging()).await;
    let mut run = world.start(&["run", "Note it", "--thread", "n", "-q"]);
    world.model.wait_for_requests(CALLS).await;
    run.kill().await.unwrap();
    let output = world.run(&["trace", "n", "--follow", "--json"]).await.code(0);
    let output = output.says("perihelion resume n");
    let spans: Vec<serde_json::Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (root, others) = spans.split_last().unwrap();
    assert_eq!((&root["kind"], &root["open"]), (&"workflow".into(), &true.into()));
    assert!(others.len() > 5 && others.iter().all(|span| span["open"] == false), "{output:?}");

    world.run(&["resume", "n", "-q"]).await.code(0);
    let output = world.run(&["trace", "n", "--follow"]).await.code(0);
    assert!(output.stdout.contains("swarm · run 1 crashed, run 2 done"), "{}", output.stdout);
    assert_eq!(output.stdout.matches("✓ notes.append_note").count(), 1);
    world.run(&["trace", "nowhere", "--follow"]).await.code(2).says("unknown thread: nowhere");
}

/// X7
#[tokio::test]
async fn a_comparison_of_two_runs_names_the_differences() {
    let script = first(
        Rule::new(Reply::text("It is 43 [1].")).role(Role::Qa).nth(2),
        first(Rule::new(select(&["mcp_agent_notes"])).role(Role::Supervisor).nth(3), reading()),
    );
    let world = World::new(script).await;
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    let diff =
        world.run(&["trace", "diff", "t", "t", "--run", "1", "--run", "2"]).await.code(1).stdout;
    for words in [
        "~ swarm · run 2 done",
        "[-42-] {+43+} [1].",
        "to: mcp_agent_files → mcp_agent_notes",
        "- ",
        "+ ",
        "model calls",
    ] {
        assert!(diff.replace("~ ✓", "~").contains(words), "missing: {words}\n{diff}");
    }
    let same = world.run(&["trace", "diff", "t", "t", "--json"]).await.code(0).json();
    assert_eq!(same["same"], true);
    let args = ["trace", "diff", "t", "t", "--run", "1", "--run", "2", "--json"];
    let json = world.run(&args).await.code(1).json();
    assert_eq!((&json["same"], &json["b"]["run"]), (&false.into(), &2.into()));
    world
        .run(&["trace", "diff", "t", "t", "--run", "7"])
        .await
        .code(2)
        .says("has no run 7; its runs are 1 to 2");
    world.run(&["trace", "diff", "t", "nowhere"]).await.code(2).says("unknown thread: nowhere");
}

/// A thread may be called as a command is.
#[tokio::test]
async fn a_thread_that_is_called_diff_is_reached_by_its_option() {
    let world = World::new(reading()).await;
    world.run(&["run", "What is it?", "--thread", "diff", "-q"]).await.code(0);
    let trace = world.run(&["trace", "--thread", "diff"]).await.code(0);
    assert!(trace.stdout.contains("(diff)"), "{}", trace.stdout);
    world.run(&["trace", "diff"]).await.code(2);
    let newest = world.run(&["trace"]).await.code(0);
    assert!(newest.stdout.contains("(diff)"), "{}", newest.stdout);
}

/// X7
#[tokio::test]
async fn an_old_thread_is_sent_whole_under_the_ids_it_always_had() {
    let (collector, url) = Collector::start(Manner::default()).await;
    let mut world = World::new(reading()).await;
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    world.run(&["run", "And again?", "--thread", "t", "-q"]).await.code(0);
    world.run(&["trace", "export", "t"]).await.code(2).says("--endpoint");
    world.run(&["trace", "export", "t", "--endpoint", "localhost:1"]).await.code(2);
    let args = ["trace", "export", "t", "--to", "otlp", "--endpoint", &url, "--json"];
    let counts = world.run(&args).await.code(0).json();
    let sent: Vec<String> = collector.spans().iter().map(|span| hex(&span.span_id)).collect();
    assert_eq!((&counts["traces"], &counts["spans"]), (&2.into(), &sent.len().into()));
    assert_eq!((&counts["rejected_spans"], &counts["no_longer_kept"]), (&0.into(), &0.into()));
    let mut shown = Vec::new();
    for run in ["1", "2"] {
        let trace = world.run(&["trace", "t", "--run", run, "--json"]).await.code(0).json();
        let spans = trace["spans"].as_array().unwrap();
        shown.extend(spans.iter().map(|span| span["span_id"].as_str().unwrap().to_owned()));
    }
    assert_eq!(sent, shown);

    // Headers are secrets of the endpoint they are configured for.
    world.set("PERIHELION_TRACES_HEADERS_ENV", "COLLECTOR_HEADERS");
    world.set("COLLECTOR_HEADERS", "x-key=canary");
    world.run(&["trace", "export", "t", "--endpoint", &url]).await.code(0);
    assert!(collector.headers().iter().all(|headers| !headers.contains_key("x-key")));
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    world.run(&["trace", "export", "t"]).await.code(0);
    assert!(collector.headers().last().unwrap().contains_key("x-key"));
}

#[tokio::test]
async fn a_collector_that_refuses_is_a_failure() {
    let world = World::new(reading()).await;
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    let (_refuses, url) = Collector::start(Manner { status: Some(403), ..Manner::default() }).await;
    let refused = world.run(&["trace", "export", "t", "--endpoint", &url]).await.code(1);
    assert_eq!(refused.stdout, "sent 0 traces with 0 spans\n");
    assert!(refused.stderr.contains("error["), "{refused:?}");
    let (_leaves_out, url) = Collector::start(Manner { rejects: 2, ..Manner::default() }).await;
    let partly = world.run(&["trace", "export", "t", "--endpoint", &url]).await.code(1);
    partly.says("rejected 2 spans");
}

#[tokio::test]
async fn the_page_is_written_to_the_requested_path_which_is_printed() {
    let mut world = World::new(reading()).await;
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    let written = world.run(&["trace", "t", "--out", "page.html"]).await.code(0);
    assert_eq!(written.stdout, "page.html\n");
    let page = world.read("page.html");
    assert!(page.starts_with("<!doctype html>") && page.contains("mcp_agent_files"));
    let temporary = world.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    world.set("TMPDIR", temporary.to_str().unwrap());
    let opened = world.run(&["trace", "t", "--open"]).await.code(0).says("there is no display");
    let path = std::path::Path::new(opened.stdout.trim());
    assert!(path.starts_with(&temporary) && path.is_file(), "{opened:?}");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).unwrap());
    assert_eq!(mode & 0o077, 0, "others may read it: {mode:o}");
    world
        .run(&["trace", "t", "--out", "nowhere/page.html"])
        .await
        .code(1)
        .says("nowhere/page.html");
}

#[tokio::test]
async fn traces_are_served_on_loopback_only_together_with_the_ui() {
    let world = World::new(reading()).await;
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    world.run(&["trace", "serve", "--addr", "0.0.0.0:0"]).await.code(2).says("loopback");
    world.run(&["trace", "serve", "--ui", "documents"]).await.code(2).says("index.html");
    std::fs::create_dir(world.path("ui")).unwrap();
    world.write("ui/index.html", "<title>the UI</title>");
    let mut server = world.start(&["trace", "serve", "--addr", "127.0.0.1:0", "--ui", "ui"]);
    let mut content = BufReader::new(server.stderr.take().unwrap()).lines();
    let line = content.next_line().await.unwrap().unwrap();
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let url = url.trim_end_matches(';').to_owned();
    perihelion::config::tls::install();
    let get = async |path: &str| {
        reqwest::get(format!("{url}{path}")).await.unwrap().text().await.unwrap()
    };
    let found = get("/api/v3/trace-summaries").await;
    assert!(found.contains("invoke_workflow swarm"), "{found}");
    for page in ["/", "/search", "/trace/0123"] {
        assert!(get(page).await.contains("the UI"), "{page}");
    }
    signal(&server, Signal::SIGTERM);
    assert!(server.wait().await.unwrap().success());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
