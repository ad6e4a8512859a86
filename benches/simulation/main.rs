//! Plays seeds of the simulation on every core, tells how fast, and stops at the first that fails.
//!
//! `--seeds N` (a million by default), `--first N` to begin at a given one, `--seed N` to hear the story of one.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool that is only run by hand")]
#![expect(clippy::disallowed_methods, reason = "it measures itself")]

#[path = "../../crates/engine/tests/it/simulation/mod.rs"]
mod simulation;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use simulation::seed::{Report, Violation, play};

/// What all threads together have seen.
#[derive(Default)]
struct Tally {
    next: AtomicU64,
    played: AtomicU64,
    is_over: AtomicBool,
    counts: Mutex<BTreeMap<&'static str, u64>>,
    failed: Mutex<Option<(u64, Vec<Violation>)>>,
}

fn argument(name: &str) -> Option<u64> {
    let mut arguments = std::env::args().skip_while(|one| one != name);
    arguments.nth(1)?.parse().ok()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

fn main() -> ExitCode {
    // `cargo test --benches` has nothing to play.
    if std::env::args().any(|one| one == "--list") {
        return ExitCode::SUCCESS;
    }
    if let Some(seed) = argument("--seed") {
        let report = runtime().block_on(play(seed, None, true));
        report.violations.iter().for_each(show);
        return if report.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let count = argument("--seeds").unwrap_or(1_000_000);
    let first = argument("--first").unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0 >> 16);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{count} seeds from {first} on {cores} threads");
    let tally = Tally::default();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| work(&tally, first, count));
        }
        watch(&tally, count, began);
    });
    let played = tally.played.into_inner();
    let seconds = began.elapsed().as_secs_f64();
    println!("{played} seeds in {seconds:.1} s: {:.0} a second", played as f64 / seconds);
    for (what, count) in tally.counts.into_inner().unwrap() {
        println!("{count:>12}  {what}");
    }
    let Some((seed, violations)) = tally.failed.into_inner().unwrap() else {
        for one in simulation::invariants::ALL {
            println!("held: {} (shown to fail by {:?})", one.name, one.broken_by);
        }
        return ExitCode::SUCCESS;
    };
    println!("seed {seed} failed:");
    violations.iter().for_each(show);
    println!("hear its story: make simulate SEED={seed}");
    ExitCode::FAILURE
}

fn show(violation: &Violation) {
    println!("{}: {}", violation.invariant, violation.reason);
}

/// Says every ten seconds how far it is.
fn watch(tally: &Tally, count: u64, began: Instant) {
    let mut reported_at = Instant::now();
    while !tally.is_over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
        if reported_at.elapsed() >= Duration::from_secs(10) {
            reported_at = Instant::now();
            let played = tally.played.load(Ordering::Relaxed);
            let rate = played as f64 / began.elapsed().as_secs_f64();
            println!("{played} of {count}, {rate:.0} a second");
        }
    }
}

fn work(tally: &Tally, first: u64, count: u64) {
    let runtime = runtime();
    let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
    while !tally.is_over.load(Ordering::Relaxed) {
        let number = tally.next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            break;
        }
        let seed = first + number;
        let played = std::panic::catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(play(seed, None, false))
        }));
        let violations = match played {
            Ok(report) => count_up(&mut counts, report),
            Err(_) => vec![Violation { invariant: "no_panic", reason: "it panicked".to_owned() }],
        };
        if !violations.is_empty() {
            *tally.failed.lock().unwrap() = Some((seed, violations));
            break;
        }
        tally.played.fetch_add(1, Ordering::Relaxed);
    }
    tally.is_over.store(true, Ordering::Relaxed);
    let mut all = tally.counts.lock().unwrap();
    counts.into_iter().for_each(|(what, more)| *all.entry(what).or_default() += more);
}

fn count_up(counts: &mut BTreeMap<&'static str, u64>, report: Report) -> Vec<Violation> {
    let Report { violations, record } = report;
    let mut add = |what: &'static str, more: u64| *counts.entry(what).or_default() += more;
    record.faults.iter().for_each(|(fault, times)| add(fault, *times));
    add("steps committed", record.head);
    add("tasks started", record.starts.len() as u64);
    add("actions sent", record.sent.len() as u64);
    add("stale writes refused", record.stale.len() as u64);
    add("actions found without an outcome", record.orphans.len() as u64);
    add("answers given", record.answers.iter().filter(|one| one.is_accepted).count() as u64);
    add("answers refused", record.answers.iter().filter(|one| !one.is_accepted).count() as u64);
    add("threads replayed", u64::from(record.replay.is_some()));
    add("threads forked", u64::from(record.fork.is_some()));
    violations
}
