//! Every store held to one simple model of it: random operations, each result and each refusal compared.
//!
//! Enter at [`story::Story`], the model as a state machine of `proptest-state-machine`, and
//! [`subject::StoreTest`], the store beside it. Invariant: a store that passes says of every operation, the
//! mistaken ones included, what the model says. A failing story is made as short as it gets, and kept in
//! `failures.txt`, whose stories are told again first. `PROPTEST_RNG_SEED` repeats a run, `PROPTEST_CASES`
//! makes it longer. Deliberately absent: two writers at the same moment (`store_suite::concurrency`), times.
#![expect(clippy::print_stdout, reason = "a random test says how to repeat it")]

mod model;
mod op;
mod rows;
mod story;
mod subject;
mod tips;
mod transfer;
mod view;

use std::path::Path;

use perihelion_engine::checkpoint::{self, MemoryStore};
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

use self::story::Story;
use self::subject::{SETUP, Setup, StoreTest};
use perihelion_test_database::postgres::server;

/// Where failing stories are kept.
const FAILURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/store_model/failures.txt");

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Tells `cases` stories of up to `longest` operations.
fn tell(setup: Setup, cases: u32, longest: usize) {
    let seed = number("PROPTEST_RNG_SEED").unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
    println!("PROPTEST_RNG_SEED={seed}");
    SETUP.set(Some(setup));
    let config = Config {
        cases: number("PROPTEST_CASES").map_or(cases, |cases| cases as u32),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(FAILURES))),
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let stories = Story::sequential_strategy(1..longest);
    let result = TestRunner::new(config.clone()).run(&stories, |(story, ops, seen)| {
        StoreTest::test_sequential(config.clone(), story, ops, seen);
        Ok(())
    });
    if let Some(setup) = SETUP.take() {
        setup.runtime.block_on(setup.store.close());
    }
    if let Err(error) = result {
        panic!("PROPTEST_RNG_SEED={seed}: {error}");
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// X4
#[test]
fn memory_behaves_like_the_model() {
    let store = std::sync::Arc::new(MemoryStore::new());
    tell(Setup { runtime: runtime(), store, url: None }, 300, 80);
}

/// X4
#[test]
fn sqlite_behaves_like_the_model() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", Path::new(directory.path()).join("model.db").display());
    let runtime = runtime();
    let store = runtime.block_on(checkpoint::open(&url)).unwrap();
    tell(Setup { runtime, store, url: Some(url) }, 40, 60);
}

/// X4
#[test]
fn postgres_behaves_like_the_model() {
    let runtime = runtime();
    let database = runtime.block_on(async { server().await.fresh().await });
    let store = runtime.block_on(checkpoint::open(&database.url)).unwrap();
    tell(Setup { runtime, store, url: Some(database.url.clone()) }, 12, 60);
}
