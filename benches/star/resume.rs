//! Restores a long stored thread in fresh processes and commits its next step.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use perihelion::clock;
use perihelion::graph::EngineError;
use perihelion::ids::ThreadId;
use perihelion::runner::{RunResult, Runner};
use serde_json::{Value, json};

use crate::databases::Place;
use crate::figures::{median, rounded};
use crate::graph::{Star, Workload, build};
use crate::machine;
use crate::options::{Backend, Options};
use crate::star::run_options;
use crate::texts::Texts;

/// Where the parent tells its child when it was started, in ns since the epoch.
const STARTED: &str = "STAR_BENCH_STARTED_NS";

fn epoch_ns() -> anyhow::Result<i64> {
    let since = SystemTime::from(clock::now()).duration_since(UNIX_EPOCH)?;
    Ok(i64::try_from(since.as_nanos())?)
}

/// Runs one super-step and checks that it was one.
async fn one_step(
    runner: &Runner<Star>,
    options: &Options,
    thread: ThreadId,
) -> anyhow::Result<()> {
    let outcome = runner.resume(thread, run_options(options, 1)).await?;
    let stopped = RunResult::Failed(EngineError::StepLimit(1));
    ensure!(outcome.result == stopped && outcome.steps == 1, "not one step: {:?}", outcome.result);
    Ok(())
}

/// Measures inside a fresh process and prints its figures in ms since the parent started it.
pub async fn child(options: Options) -> anyhow::Result<()> {
    let options = &options;
    let started: i64 = std::env::var(STARTED).context("this is the parent's to call")?.parse()?;
    let since = || -> anyhow::Result<f64> { Ok((epoch_ns()? - started) as f64 / 1e6) };
    let main = since()?;
    let place = Place::existing(options)?;
    let store = place.open().await?;
    let options = &options.publishing(place.address(), &store);
    let open = since()?;
    let work = Arc::new(Workload {
        texts: Texts::lazy(),
        rounds: options.rounds,
        agents: options.agents,
        gs_keys: options.gs_keys,
        entries: Default::default(),
        aside: None,
    });
    let runner = Runner::new(build(&work)?, Arc::clone(&store));
    let (thread, _) = ThreadId::from_name(&options.thread);
    let before = runner.state(thread, None).await?;
    let state = since()?;
    ensure!(
        before.next.first().is_some_and(|next| next.starts_with("agent")),
        "the agent is not next: {:?}",
        before.next
    );
    one_step(&runner, options, thread).await?;
    let step = since()?;
    // The supervisor's turn, so that the next process finds the agent next again.
    one_step(&runner, options, thread).await?;
    let after = runner.state(thread, None).await?;
    ensure!(after.state.results.len() == before.state.results.len() + 1, "no result was added");
    println!(
        "{}",
        json!({
            "main": main, "open": open, "state": state, "step": step,
            "messages": before.state.messages.len(), "results": before.state.results.len(),
            "rss_mb": machine::peak_memory(),
        })
    );
    store.close().await;
    Ok(())
}

/// Starts fresh processes, one after the other, and prints the medians.
pub fn measure(options: &Options) -> anyhow::Result<()> {
    ensure!(options.backend != Backend::Memory, "memory does not outlive a process");
    let fsync_probe_us = machine::fsync_probe()?;
    let mut runs: Vec<Value> = Vec::new();
    for _ in 0..options.runs.max(1) {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(std::env::args_os().skip(1)).arg("--child").stdout(Stdio::piped());
        let started = epoch_ns()?;
        let output = command.env(STARTED, started.to_string()).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        runs.push(serde_json::from_slice(&output.stdout)?);
    }
    let of =
        |name: &str| -> Vec<f64> { runs.iter().filter_map(|run| run[name].as_f64()).collect() };
    let from = |later: &str, earlier: &str| -> Vec<f64> {
        of(later).iter().zip(of(earlier)).map(|(later, earlier)| later - earlier).collect()
    };
    let middle = |mut values: Vec<f64>| rounded(median(&mut values), 2);
    let each = |values: Vec<f64>| values.into_iter().map(|ms| rounded(ms, 2)).collect::<Vec<_>>();
    let line = json!({
        "bench": "resume", "engine": "perihelion", "engine_version": env!("CARGO_PKG_VERSION"),
        "backend": options.backend.name(), "publish": options.publishes(), "variant": {},
        "stored_messages": runs[0]["messages"], "stored_results": runs[0]["results"],
        "runs": runs.len(),
        "process_to_imported_ms": middle(of("main")), "connect_ms": middle(from("open", "main")),
        "process_to_state_ms": middle(of("state")), "process_to_step_ms": middle(of("step")),
        "open_to_state_ms": middle(from("state", "open")),
        "open_to_step_ms": middle(from("step", "open")),
        "state_to_step_ms": middle(from("step", "state")),
        "open_to_state_all_ms": each(from("state", "open")),
        "open_to_step_all_ms": each(from("step", "open")),
        "max_rss_mb": middle(of("rss_mb")), "fsync_probe_us": fsync_probe_us,
        "runtime": concat!("rust ", env!("CARGO_PKG_RUST_VERSION")),
        "load1": machine::load(), "machine": machine::name(),
        "commit": machine::commit(),
    });
    println!("{line}");
    let place = Place::existing(options)?;
    tokio::runtime::Runtime::new()?.block_on(place.remove())
}
