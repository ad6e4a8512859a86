//! Runs the workload and prints its figures.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context, ensure};
use perihelion::checkpoint::Store;
use perihelion::clock;
use perihelion::graph::{EngineError, Limits};
use perihelion::ids::ThreadId;
use perihelion::runner::{RunOptions, RunOutcome, RunResult, Runner};
use serde_json::json;

use crate::databases::Place;
use crate::figures::{median, micros, rounded, steps, summary};
use crate::graph::{Aside, Star, Workload, build};
use crate::machine;
use crate::options::Options;
use crate::texts::{CHECKSUM, Texts, payload};

/// Returns the options of a run that is stopped after so many super-steps.
pub fn run_options(options: &Options, max_steps: u64) -> RunOptions<Star> {
    RunOptions {
        durability: options.durability.durability(),
        limits: Limits { max_steps, ..Limits::default() },
        publish: options.bus.clone(),
        ..RunOptions::default()
    }
}

/// Makes the texts and refuses to continue when they are not the workload's.
pub fn workload(
    options: &Options,
    rounds: usize,
    threads: &[ThreadId],
    aside: Option<Aside>,
) -> anyhow::Result<Arc<Workload>> {
    let texts = Texts::of_run(rounds, threads.len());
    let checksum = texts.checksum();
    ensure!(checksum == CHECKSUM, "these are not the workload's texts: {checksum}");
    let room = 2 * rounds + 4;
    let entries = threads.iter().map(|id| (*id, Mutex::new(Vec::with_capacity(room)))).collect();
    let agents = options.agents;
    let gs_keys = options.gs_keys;
    Ok(Arc::new(Workload { texts, rounds, agents, gs_keys, entries, aside }))
}

/// Checks that a finished run did all the work.
pub fn check(options: &Options, rounds: usize, outcome: &RunOutcome<Star>) -> anyhow::Result<()> {
    ensure!(outcome.result == RunResult::Done, "the run did not end well: {:?}", outcome.result);
    ensure!(outcome.steps == 2 * rounds as u64 + 3, "super-steps: {}", outcome.steps);
    let state = &outcome.state;
    ensure!(state.messages.len() == 2 * rounds + 2, "messages: {}", state.messages.len());
    ensure!(state.results.len() == rounds, "results: {}", state.results.len());
    let keys = if options.gs_keys == 0 { rounds } else { rounds.min(options.gs_keys) };
    ensure!(state.global_state.size() == keys, "keys: {}", state.global_state.size());
    let bytes: usize = state.messages.iter().map(|message| message.content.len()).sum();
    ensure!(bytes >= rounds * (1024 + 200) * 99 / 100, "bytes of messages: {bytes}");
    ensure!(state.next_step == "end" && state.tasks.len() == 1, "the end was not reached");
    Ok(())
}

/// Runs a throw-away thread, so that connections and prepared statements are there.
pub async fn warm_up(options: &Options, store: &Arc<dyn Store>) -> anyhow::Result<()> {
    if options.warmup == 0 {
        return Ok(());
    }
    let work = workload(options, options.warmup, &[], None)?;
    let runner = Runner::new(build(&work)?, Arc::clone(store));
    let thread = ThreadId::new();
    runner.create(thread, None).await?;
    let outcome =
        runner.start(thread, work.input("warmup"), run_options(options, u64::MAX)).await?;
    check(options, options.warmup, &outcome)?;
    Ok(store.delete(thread).await?)
}

/// One thread's run.
pub struct Ran {
    begin: Instant,
    end: Instant,
    pub outcome: RunOutcome<Star>,
}

async fn run_thread(
    runner: Runner<Star>,
    work: Arc<Workload>,
    name: String,
    options: RunOptions<Star>,
) -> anyhow::Result<Ran> {
    let (thread, title) = ThreadId::from_name(&name);
    let begin = clock::monotonic();
    runner.create(thread, title.map(str::to_owned)).await?;
    let outcome = runner.start(thread, work.input(&name), options).await?;
    Ok(Ran { begin, end: clock::monotonic(), outcome })
}

/// Runs every thread at the same time.
pub async fn run_all(
    runner: &Runner<Star>,
    work: &Arc<Workload>,
    names: &[String],
    options: &Options,
    max_steps: u64,
) -> anyhow::Result<Vec<Ran>> {
    let running: Vec<_> = names
        .iter()
        .map(|name| {
            let options = run_options(options, max_steps);
            tokio::spawn(run_thread(runner.clone(), Arc::clone(work), name.clone(), options))
        })
        .collect();
    let mut ran = Vec::with_capacity(running.len());
    for task in running {
        ran.push(task.await??);
    }
    Ok(ran)
}

/// Measures one case and prints its line.
pub async fn measure(options: Options) -> anyhow::Result<()> {
    let options = &options;
    let fsync_probe_us = machine::fsync_probe()?;
    let names: Vec<String> = (0..options.threads).map(|number| format!("t{number}")).collect();
    let threads: Vec<ThreadId> = names.iter().map(|name| ThreadId::from_name(name).0).collect();
    let place = Place::fresh(options).await?;
    let store = place.open().await?;
    let options = &options.publishing(place.address(), &store);
    let work = workload(options, options.rounds, &threads, None)?;
    let runner = Runner::new(build(&work)?, Arc::clone(&store));
    warm_up(options, &store).await?;
    if let Some(rounds) = options.stop_after {
        return populate(options, &runner, &work, &names, rounds).await;
    }
    let wal = place.wal().await?;
    let cpu = machine::cpu_seconds();
    let begin = clock::monotonic();
    let ran = run_all(&runner, &work, &names, options, u64::MAX).await?;
    let wall = begin.elapsed().as_secs_f64();
    let cpu = machine::cpu_seconds().zip(cpu).map(|(after, before)| rounded(after - before, 2));
    let wal = place.wal().await?.zip(wal).map(|(after, before)| after - before);
    let max_rss_mb = machine::peak_memory();
    store.close().await;
    let size = place.size().await?;

    let mut latencies = Vec::new();
    let mut first_node = Vec::new();
    for (thread, Ran { begin, end, outcome }) in threads.iter().zip(&ran) {
        check(options, options.rounds, outcome)?;
        let entries = work.entries_of(*thread);
        first_node.push(micros(*entries.first().context("no node was entered")? - *begin));
        latencies.push(steps(entries, *end));
    }
    let count: usize = latencies.iter().map(Vec::len).sum();
    ensure!(count == options.threads * (2 * options.rounds + 3), "steps: {count}");
    let payload = options.threads * payload(options.rounds);
    let summary = summary(&latencies);
    let tenths = summary["last10_median_us"].as_f64().zip(summary["first10_median_us"].as_f64());
    let mut line = json!({
        "bench": "star", "engine": "perihelion", "engine_version": env!("CARGO_PKG_VERSION"),
        "backend": options.backend.name(), "rounds": options.rounds, "threads": options.threads,
        "durability": options.durability.name(), "publish": options.publishes(),
        "variant": { "agents": options.agents, "gs_keys": options.gs_keys },
        "steps": count, "wall_s": rounded(wall, 4), "steps_per_s": rounded(count as f64 / wall, 1),
        "first_node_us": rounded(median(&mut first_node), 1),
    });
    let more = json!({
        "cpu_s": cpu, "db_bytes": size.bytes, "db_tables": size.tables, "wal_bytes": wal,
        "fsync_probe_us": fsync_probe_us, "max_rss_mb": max_rss_mb,
        "workload": CHECKSUM, "runtime": concat!("rust ", env!("CARGO_PKG_RUST_VERSION")),
        "payload_bytes": payload,
        "last_per_first": tenths.map(|(last, first)| rounded(last / first, 3)),
        "db_per_payload": size.bytes.map(|bytes| rounded(bytes as f64 / payload as f64, 3)),
        "rss_bound_mb": rounded(3.0 * payload as f64 / 1_048_576.0 + 30.0, 1),
        "load1": machine::load(), "machine": machine::name(),
        "commit": machine::commit(),
    });
    for part in [summary, more.as_object().cloned().unwrap_or_default()] {
        line.as_object_mut().context("a line is an object")?.extend(part);
    }
    println!("{line}");
    place.remove().await
}

/// Runs every thread for so many rounds and leaves it with an agent as its next node.
async fn populate(
    options: &Options,
    runner: &Runner<Star>,
    work: &Arc<Workload>,
    names: &[String],
    rounds: usize,
) -> anyhow::Result<()> {
    ensure!(rounds < options.rounds, "--stop-after must be less than --rounds");
    let begin = clock::monotonic();
    let max_steps = 2 * rounds as u64 + 2;
    for ran in run_all(runner, work, names, options, max_steps).await? {
        let stopped = RunResult::Failed(EngineError::StepLimit(max_steps));
        ensure!(ran.outcome.result == stopped, "it did not stop: {:?}", ran.outcome.result);
        ensure!(ran.outcome.state.results.len() == rounds, "it stopped elsewhere");
    }
    let wall = rounded(begin.elapsed().as_secs_f64(), 3);
    println!("{}", json!({ "populated": names, "stop_after": rounds, "wall_s": wall }));
    runner.store().close().await;
    Ok(())
}
