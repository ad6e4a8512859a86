//! Compares a durable step with the least it could cost: one insert of the same bytes.
//!
//! Blocks of inserts and blocks of steps take turns in one run, so that a drift of the machine hits both.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{bail, ensure};
use futures::FutureExt;
use perihelion::checkpoint::{PostgresStore, SqliteStore, Store};
use perihelion::clock;
use perihelion::graph::NodeError;
use perihelion::ids::ThreadId;
use perihelion::runner::Runner;
use serde_json::json;
use sqlx::{Executor, PgConnection, SqliteConnection};

use crate::databases::Place;
use crate::figures::{median, micros, percentile, rounded, steps};
use crate::graph::{Aside, build};
use crate::machine;
use crate::options::{Backend, Options, When};
use crate::star::{check, run_options, warm_up, workload};

/// Inserts rows into a table without any index, over the connection that the store commits with.
enum Inserter {
    Postgres(Arc<PostgresStore>),
    Sqlite(Arc<SqliteStore>),
}

impl Inserter {
    /// Opens a store and a way to insert beside it.
    async fn open(options: &Options, place: &Place) -> anyhow::Result<(Arc<dyn Store>, Self)> {
        match options.backend {
            Backend::Memory => bail!("the memory store writes nothing: use sqlite or postgres"),
            Backend::Postgres => {
                let store = Arc::new(PostgresStore::open(place.address()).await?);
                let create = "CREATE TABLE floor_row (body bytea NOT NULL)";
                store.with_connection(async |it| it.execute(create).await).await?;
                Ok((Arc::clone(&store) as Arc<dyn Store>, Self::Postgres(store)))
            }
            Backend::Sqlite => {
                let store = Arc::new(SqliteStore::open(place.address()).await?);
                let create = "CREATE TABLE floor_row (body BLOB NOT NULL)";
                store.with_connection(async |it| it.execute(create).await).await?;
                Ok((Arc::clone(&store) as Arc<dyn Store>, Self::Sqlite(store)))
            }
        }
    }

    async fn insert(&self, body: &[u8]) -> anyhow::Result<()> {
        const INSERT: &str = "INSERT INTO floor_row (body) VALUES ($1)";
        match self {
            Self::Postgres(store) => {
                let insert =
                    async |it: &mut PgConnection| sqlx::query(INSERT).bind(body).execute(it).await;
                store.with_connection(insert).await?;
            }
            Self::Sqlite(store) => {
                let insert = async |it: &mut SqliteConnection| {
                    sqlx::query(INSERT).bind(body).execute(it).await
                };
                store.with_connection(insert).await?;
            }
        }
        Ok(())
    }
}

/// What each step's row holds: the encoded delta and the frontier, by step.
pub async fn bodies(store: &dyn Store, thread: ThreadId) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut rows = store.history(thread, None, u32::MAX).await?;
    rows.reverse();
    Ok(rows.into_iter().map(|row| [row.delta.bytes, row.frontier].concat()).collect())
}

/// Inserts, and their times in µs.
struct Floor {
    inserter: Inserter,
    bodies: Vec<Vec<u8>>,
    times: Mutex<Vec<f64>>,
}

impl Floor {
    /// Inserts the rows of so many steps after step `first`.
    async fn block(&self, first: usize, count: usize) -> anyhow::Result<()> {
        let mut times = Vec::with_capacity(count);
        for body in self.bodies.iter().skip(first).take(count) {
            let begin = clock::monotonic();
            self.inserter.insert(body).await?;
            times.push(micros(begin.elapsed()));
        }
        self.times.lock().unwrap_or_else(PoisonError::into_inner).extend(times);
        Ok(())
    }
}

/// Measures both and prints one line.
pub async fn measure(options: Options) -> anyhow::Result<()> {
    let options = &options;
    ensure!(options.durability == When::Sync, "only --durability sync waits for the disk");
    let fsync_probe_us = machine::fsync_probe()?;
    let place = Place::fresh(options).await?;
    let (store, inserter) = Inserter::open(options, &place).await?;
    let options = &options.publishing(place.address(), &store);
    warm_up(options, &store).await?;

    // A first run gives the bytes that the second one will write again.
    let rounds = options.rounds;
    let work = workload(options, rounds, &[], None)?;
    let runner = Runner::new(build(&work)?, Arc::clone(&store));
    let sample = ThreadId::new();
    runner.create(sample, None).await?;
    let outcome = runner.start(sample, work.input("t0"), run_options(options, u64::MAX)).await?;
    check(options, rounds, &outcome)?;
    let bodies = bodies(store.as_ref(), sample).await?;
    let mean_bytes = bodies.iter().map(Vec::len).sum::<usize>() as f64 / bodies.len() as f64;

    let floor = Arc::new(Floor { inserter, bodies, times: Mutex::default() });
    let block = options.block.max(1);
    let shared = Arc::clone(&floor);
    // Before supervisor k stand the input's step, preprocess, and two steps of each round.
    let aside: Aside = Arc::new(move |k| {
        let floor = Arc::clone(&shared);
        async move {
            if !k.is_multiple_of(block) {
                return Ok(());
            }
            let done = floor.block(2 * k + 2, 2 * block).await;
            done.map_err(|error| NodeError::failed("floor", error.to_string()))
        }
        .boxed()
    });
    let (thread, title) = ThreadId::from_name("t0");
    let work = workload(options, rounds, &[thread], Some(aside))?;
    let runner = Runner::new(build(&work)?, Arc::clone(&store));
    runner.create(thread, title.map(str::to_owned)).await?;
    let outcome = runner.start(thread, work.input("t0"), run_options(options, u64::MAX)).await?;
    let end = clock::monotonic();
    check(options, rounds, &outcome)?;

    let all = steps(work.entries_of(thread), end);
    // Step 2k ends where supervisor k is entered: those that held a block of inserts do not count.
    let counts = |at: usize| at % 2 == 1 || !(at / 2).is_multiple_of(block);
    let mut steps: Vec<f64> =
        all.into_iter().enumerate().filter(|(at, _)| counts(*at)).map(|(_, time)| time).collect();
    let mut inserts =
        std::mem::take(&mut *floor.times.lock().unwrap_or_else(PoisonError::into_inner));
    ensure!(inserts.len() >= 2 * rounds, "inserts: {}", inserts.len());
    let step = median(&mut steps);
    let insert = median(&mut inserts);
    let line = json!({
        "bench": "floor", "engine": "perihelion", "engine_version": env!("CARGO_PKG_VERSION"),
        "backend": options.backend.name(), "rounds": rounds, "block": block, "publish": options.publishes(),
        "row_bytes_mean": rounded(mean_bytes, 1),
        "steps": steps.len(), "inserts": inserts.len(),
        "step_median_us": rounded(step, 1), "insert_median_us": rounded(insert, 1),
        "step_p10_us": rounded(percentile(&steps, 0.1), 1),
        "insert_p10_us": rounded(percentile(&inserts, 0.1), 1),
        "step_per_insert_p10": rounded(percentile(&steps, 0.1) / percentile(&inserts, 0.1), 3),
        "step_p99_us": rounded(percentile(&steps, 0.99), 1),
        "insert_p99_us": rounded(percentile(&inserts, 0.99), 1),
        "step_per_insert": rounded(step / insert, 3),
        "fsync_probe_us": fsync_probe_us, "load1": machine::load(), "machine": machine::name(),
        "commit": machine::commit(),
    });
    println!("{line}");
    store.close().await;
    place.remove().await
}
