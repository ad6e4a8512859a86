//! The short run: new seeds each time, the kept ones always, and every invariant shown able to fail.

use std::collections::HashMap;

use crate::simulation::invariants::ALL;
use crate::simulation::seed::{Report, play};

#[path = "kept.rs"]
mod kept;

use self::kept::KEPT;

/// Seeds of one run of the tests; `make simulate` plays a million.
const SEEDS: u64 = 500;

/// Stories in which a flaw must have shown; each of them shows much sooner.
const PATIENCE: u64 = 3_000;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn assert_clean(seed: u64, report: &Report) {
    let violations = &report.violations;
    assert!(violations.is_empty(), "seed {seed} (SIMULATION_SEED={seed}): {violations:#?}");
}

/// X2: `SIMULATION_SEED=n` plays that seed alone, with its story told.
#[test]
fn every_invariant_survives_every_failure() {
    let runtime = runtime();
    if let Some(seed) = number("SIMULATION_SEED") {
        return assert_clean(seed, &runtime.block_on(play(seed, None, true)));
    }
    let first = uuid::Uuid::new_v4().as_u64_pair().0 >> 16;
    let count = number("SIMULATION_SEEDS").unwrap_or(SEEDS).max(SEEDS);
    println!("{count} seeds from {first}");
    let mut faults: HashMap<&str, u64> = HashMap::new();
    let mut stale = 0;
    let mut orphans = 0;
    for seed in first..first + count {
        let report = runtime.block_on(play(seed, None, false));
        assert_clean(seed, &report);
        for (fault, count) in report.record.faults {
            *faults.entry(fault).or_default() += count;
        }
        stale += report.record.stale.len();
        orphans += report.record.orphans.len();
    }
    println!("{faults:?}, {stale} stale writes, {orphans} actions found without an outcome");
    // A run without these would have proved little.
    for fault in
        ["crash", "refused", "lost reply", "takeover", "cancel", "vanish", "snapshot", "compaction"]
    {
        assert!(faults.get(fault).is_some_and(|count| *count >= 1), "{fault}: {faults:?}");
    }
    assert!(stale >= 20 && orphans >= 20, "{stale} stale writes, {orphans} orphans");
}

#[test]
fn the_stored_seeds_still_pass() {
    let runtime = runtime();
    for (seed, why) in KEPT {
        println!("{seed}: {why}");
        assert_clean(*seed, &runtime.block_on(play(*seed, None, false)));
    }
}

#[test]
fn a_seed_always_plays_the_same_story() {
    let runtime = runtime();
    for seed in 0..200 {
        let story = || {
            let record = runtime.block_on(play(seed, None, false)).record;
            let sent: Vec<_> =
                record.sent.iter().map(|one| (one.step, one.task, one.what.clone())).collect();
            let hashes: Vec<_> = record.steps.iter().map(|step| step.hash).collect();
            (
                record.faults,
                record.starts.len(),
                record.acks.len(),
                record.stale.len(),
                sent,
                hashes,
            )
        };
        assert_eq!(story(), story(), "seed {seed}");
    }
}

/// X2: Each invariant is shown a store, or a node, that breaks it.
#[test]
fn every_invariant_can_fail() {
    let runtime = runtime();
    for invariant in ALL {
        let found = (0..PATIENCE).find_map(|seed| {
            let report = runtime.block_on(play(seed, Some(invariant.broken_by), false));
            let one = report.violations.into_iter().find(|one| one.invariant == invariant.name)?;
            Some((seed, one.reason))
        });
        let flaw = invariant.broken_by;
        assert!(found.is_some(), "{} is not broken by {flaw:?}", invariant.name);
        println!("{}, broken by {flaw:?}: {found:?}", invariant.name);
    }
}
