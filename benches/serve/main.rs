//! Measures the service as a whole process: runs a second, the first event of a stream, and what idle streams cost.
//!
//! `--runs N`, `--at-once N`, `--streams N` and `--idle N` set the sizes. `--database URL` names the database, SQLite in
//! a directory of its own by default. `--reference URL --assistant NAME` measures another server of the same interface
//! with the same client; `--pid N` names its process, whose memory is read. Results are lines of JSON.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool that is only run by hand")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

mod client;
#[path = "../run/processor.rs"]
mod processor;
mod server;

use std::time::Instant;

use serde_json::json;

use client::Client;

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
    let (runs, at_once) = (number("--runs", 400), number("--at-once", 32));
    let (streams, idle) = (number("--streams", 200), number("--idle", 1_000));
    let (own, url, pid) = match argument("--reference") {
        Some(url) => (None, url, number("--pid", 0) as u32),
        None => {
            let server = server::Server::start(argument("--database")).await;
            let (url, pid) = (server.url.clone(), server.pid());
            (Some(server), url, pid)
        }
    };
    let name = if own.is_some() { "perihelion" } else { "reference" };
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

    let mut firsts = client.first_events(streams, at_once).await;
    firsts.sort_by(f64::total_cmp);
    let at = |part: f64| firsts[((firsts.len() - 1) as f64 * part) as usize];
    println!(
        "{}",
        json!({
            "server": name, "what": "first event, ms", "streams": streams, "at_once": at_once,
            "p50": at(0.5), "p99": at(0.99), "most": at(1.0),
        })
    );

    for (what, mut each) in
        [("list, ms", client.lists(50).await), ("open, ms", client.opens(50).await)]
    {
        each.sort_by(f64::total_cmp);
        let at = |part: f64| each[((each.len() - 1) as f64 * part) as usize];
        println!("{}", json!({ "server": name, "what": what, "p50": at(0.5), "most": at(1.0) }));
    }

    if own.is_some() && idle > 0 {
        let before = server::resident_kb(pid);
        let held = client.idle_streams(idle).await;
        let after = server::resident_kb(pid);
        println!(
            "{}",
            json!({
                "server": name, "what": "idle streams", "streams": held.len(),
                "kb_each": (after.saturating_sub(before)) as f64 / held.len() as f64,
            })
        );
        let began = Instant::now();
        client.runs(at_once * 4, at_once).await;
        println!(
            "{}",
            json!({
                "server": name, "what": "runs beside idle streams", "streams": held.len(),
                "per_second": (at_once * 4) as f64 / began.elapsed().as_secs_f64(),
            })
        );
    }
}
