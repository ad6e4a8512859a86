//! Measures the service as a whole process: runs a second, the first event of a stream, and what idle streams cost.
//!
//! `--runs N`, `--at-once N`, `--streams N`, `--idle N` and `--active N` set the sizes. `--database URL` names the database, SQLite in
//! a directory of its own by default. `--reference URL --assistant NAME` measures another server of the same interface
//! with the same client; `--pid N` names its process, whose time is read, `--named NAME` what its lines are called, and
//! `--model-port N` where the model listens that it asks. Results are lines of JSON.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool that is only run by hand")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

mod client;
mod database;
mod model;
#[path = "../run/processor.rs"]
mod processor;
#[path = "../program.rs"]
mod program;
mod server;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use client::Client;

/// Words of an answer that is streamed slowly, one a second.
const WORDS: u32 = 40;

/// How long it takes until all such answers have begun.
const UNTIL_ALL: Duration = Duration::from_secs(20);

/// How often a run is begun beside them.
const PROBE_EVERY: Duration = Duration::from_millis(100);

fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|one| one != name).nth(1)
}

fn number(name: &str, otherwise: usize) -> usize {
    argument(name).map_or(otherwise, |text| text.parse().unwrap())
}

#[tokio::main]
async fn main() {
    // `cargo test --benches` has nothing to measure.
    if std::env::args().any(|one| one == "--list") || !std::env::args().any(|one| one == "--bench")
    {
        return;
    }
    perihelion::config::tls::install();
    let runs = number("--runs", 400);
    let at_once = number("--at-once", 32);
    let streams = number("--streams", 400);
    let idle = number("--idle", 5_000);
    let active = number("--active", 1_000);
    let database = argument("--database").unwrap_or_default();
    let database = if database.starts_with("postgres") { "Postgres" } else { "SQLite" };
    let (own, url, pid) = match argument("--reference") {
        Some(url) => {
            let port = number("--model-port", 0);
            model::start(u16::try_from(port).unwrap()).await;
            (None, url, number("--pid", 0) as u32)
        }
        None => {
            let server = server::Server::start(argument("--database")).await;
            let url = server.url.clone();
            let pid = server.pid();
            (Some(server), url, pid)
        }
    };
    let name = match &own {
        Some(_) => format!("perihelion, {database}"),
        None => argument("--named").unwrap_or_else(|| "reference".to_owned()),
    };
    let assistant = argument("--assistant").unwrap_or_else(|| "swarm".to_owned());
    let client = Client::new(url, assistant);
    // Warm: connections, caches, compiled statements.
    client.runs(at_once * 2, at_once).await;

    let before = processor::processor_ms(pid);
    let began = Instant::now();
    client.runs(runs, at_once).await;
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{}",
        json!({
            "server": name, "what": "runs", "runs": runs, "at_once": at_once,
            "per_second": (runs as f64 / seconds * 10.0).round() / 10.0,
            "server_processor_ms_per_run": (processor::processor_ms(pid) - before) / runs as f64,
        })
    );

    for at_once in [1, at_once] {
        let streams = if at_once == 1 { streams / 4 } else { streams };
        let firsts = parts(client.first_events(streams, at_once).await);
        println!(
            "{}",
            json!({
                "server": name, "what": "first event, ms", "streams": streams, "at_once": at_once, "each": firsts,
            })
        );
    }

    for (what, each) in [("list, ms", client.lists(50).await), ("open, ms", client.opens(50).await)]
    {
        println!("{}", json!({ "server": name, "what": what, "each": parts(each) }));
    }

    // What a filled database is asked for as well (`make bench-scale`).
    if let Some(url) = argument("--database").filter(|url| url.starts_with("postgres")) {
        for (what, each) in database::measure(&url).await {
            println!("{}", json!({ "server": name, "what": what, "each": parts(each) }));
        }
    }

    if own.is_some() && idle > 0 {
        let before = server::resident_kb(pid);
        let connections = client.idle_streams(idle).await;
        let after = server::resident_kb(pid);
        println!(
            "{}",
            json!({
                "server": name, "what": "idle streams", "streams": connections.len(),
                "kb_each": (after.saturating_sub(before)) as f64 / connections.len() as f64,
            })
        );
        let began = Instant::now();
        client.runs(at_once * 4, at_once).await;
        println!(
            "{}",
            json!({
                "server": name, "what": "runs beside idle streams", "streams": connections.len(),
                "per_second": (at_once * 4) as f64 / began.elapsed().as_secs_f64(),
            })
        );
        if active > 0 {
            let mut shown = beside_active(&client, active, pid).await;
            shown["server"] = json!(name);
            shown["idle"] = json!(connections.len());
            println!("{shown}");
        }
    }
}

/// Has answers streamed slowly, and measures what a run that is begun meanwhile waits for its first event, and what the
/// words of the answers take from the model to the client.
async fn beside_active(client: &Client, active: usize, pid: u32) -> Value {
    let answers: Vec<_> = (0..active)
        .map(|index| {
            let client = client.clone();
            let pause = UNTIL_ALL.mul_f64(index as f64 / active as f64);
            tokio::spawn(async move {
                tokio::time::sleep(pause).await;
                client.slow_answer(WORDS).await
            })
        })
        .collect();
    tokio::time::sleep(UNTIL_ALL).await;
    let before = processor::processor_ms(pid);
    let began = Instant::now();
    // All continue until the first of them ends.
    let rest = Duration::from_secs(WORDS.into()).saturating_sub(UNTIL_ALL + Duration::from_secs(2));
    let mut probes = Vec::new();
    while began.elapsed() < rest {
        let client = client.clone();
        probes.push(tokio::spawn(async move { client.first_event().await }));
        tokio::time::sleep(PROBE_EVERY).await;
    }
    let took = processor::processor_ms(pid) - before;
    let cores = took / (began.elapsed().as_secs_f64() * 1e3);
    let mut firsts = Vec::new();
    for probe in probes {
        firsts.push(probe.await.unwrap());
    }
    let mut words = Vec::new();
    let mut whole = 0;
    for answer in answers {
        let each = answer.await.unwrap();
        whole += usize::from(each.len() == WORDS as usize);
        words.extend(each);
    }
    json!({
        "what": "active streams", "streams": active, "whole": whole, "server_processors": cores,
        "runs": firsts.len(), "first_event_ms": parts(firsts), "word_ms": parts(words),
    })
}

/// Returns the median, the 99th of a hundred, and the most.
fn parts(mut each: Vec<f64>) -> Value {
    each.sort_by(f64::total_cmp);
    let at = |part: f64| {
        let found = each[((each.len() - 1) as f64 * part).ceil() as usize];
        (found * 100.0).round() / 100.0
    };
    json!({ "p50": at(0.5), "p99": at(0.99), "most": at(1.0) })
}
