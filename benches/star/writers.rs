//! Compares many threads' steps with as many connections that only insert.
//!
//! Rounds of inserts and rounds of runs take turns, so that a drift of the machine hits both. Every
//! connection inserts the very bytes of a thread's step rows, one autocommitted statement after another;
//! every run commits each of its steps before the next begins, and its time holds all that a run has
//! beside its steps.

use std::sync::Arc;

use anyhow::ensure;
use perihelion::checkpoint::Store;
use perihelion::clock;
use perihelion::ids::ThreadId;
use perihelion::runner::Runner;
use serde_json::json;
use sqlx::{Connection, Executor, PgConnection};

use crate::databases::Place;
use crate::figures::{median, rounded};
use crate::floor::bodies;
use crate::graph::build;
use crate::machine;
use crate::options::{Backend, Options, When};
use crate::star::{check, run_all, run_options, warm_up, workload};

/// Measures both and prints one line.
pub async fn measure(options: Options) -> anyhow::Result<()> {
    let options = &options;
    ensure!(
        options.backend == Backend::Postgres,
        "many at once of connections needs --backend postgres"
    );
    ensure!(options.durability == When::Sync, "only --durability sync waits for the disk");
    let fsync_probe_us = machine::fsync_probe()?;
    let place = Place::fresh(options).await?;
    let store = place.open().await?;
    let options = &options.publishing(place.address(), &store);
    warm_up(options, &store).await?;

    let names: Vec<Vec<String>> = (0..options.runs)
        .map(|turn| (0..options.threads).map(|number| format!("t{turn}-{number}")).collect())
        .collect();
    let threads: Vec<ThreadId> =
        names.iter().flatten().map(|name| ThreadId::from_name(name).0).collect();
    let work = workload(options, options.rounds, &threads, None)?;
    let runner = Runner::new(build(&work)?, Arc::clone(&store));
    let rows = Arc::new(sample(options, &store).await?);
    let mut connections = connect(place.address(), options.threads).await?;

    let mut inserts = Vec::new();
    let mut steps = Vec::new();
    for names in &names {
        let (back, speed) = insert_all(connections, &rows).await?;
        connections = back;
        inserts.push(speed);
        let begin = clock::monotonic();
        let ran = run_all(&runner, &work, names, options, u64::MAX).await?;
        let wall = begin.elapsed().as_secs_f64();
        for ran in &ran {
            check(options, options.rounds, &ran.outcome)?;
        }
        let count = options.threads * (2 * options.rounds + 3);
        steps.push(count as f64 / wall);
    }
    let mut ratios: Vec<f64> =
        steps.iter().zip(&inserts).map(|(step, insert)| step / insert).collect();
    let mean_bytes = rows.iter().map(Vec::len).sum::<usize>() as f64 / rows.len() as f64;
    println!(
        "{}",
        json!({
            "bench": "crowd", "engine": "perihelion", "engine_version": env!("CARGO_PKG_VERSION"),
            "backend": options.backend.name(), "rounds": options.rounds, "threads": options.threads,
            "turns": options.runs, "publish": options.publishes(), "row_bytes_mean": rounded(mean_bytes, 1),
            "steps_per_s": rounded(median(&mut steps), 1),
            "inserts_per_s": rounded(median(&mut inserts), 1),
            "steps_per_insert": rounded(median(&mut ratios), 3),
            "steps_per_insert_least": rounded(ratios.first().copied().unwrap_or_default(), 3),
            "fsync_probe_us": fsync_probe_us, "load1": machine::load(), "machine": machine::name(),
        "commit": machine::commit(),
        })
    );
    drop(connections);
    store.close().await;
    place.remove().await
}

/// Runs one thread and returns what its step rows hold.
async fn sample(options: &Options, store: &Arc<dyn Store>) -> anyhow::Result<Vec<Vec<u8>>> {
    let work = workload(options, options.rounds, &[], None)?;
    let runner = Runner::new(build(&work)?, Arc::clone(store));
    let thread = ThreadId::new();
    runner.create(thread, None).await?;
    let outcome = runner.start(thread, work.input("t0"), run_options(options, u64::MAX)).await?;
    check(options, options.rounds, &outcome)?;
    bodies(store.as_ref(), thread).await
}

const INSERT: &str = "INSERT INTO floor_row (body) VALUES ($1)";

/// Opens connections whose statement is prepared.
async fn connect(address: &str, count: usize) -> anyhow::Result<Vec<PgConnection>> {
    let mut connections = Vec::with_capacity(count);
    for number in 0..count {
        let mut connection = PgConnection::connect(address).await?;
        if number == 0 {
            connection.execute("CREATE TABLE floor_row (body bytea NOT NULL)").await?;
        }
        sqlx::query(INSERT).bind(&b"ready"[..]).execute(&mut connection).await?;
        connections.push(connection);
    }
    Ok(connections)
}

/// Inserts all rows over every connection at the same time; returns rows per second.
async fn insert_all(
    connections: Vec<PgConnection>,
    rows: &Arc<Vec<Vec<u8>>>,
) -> anyhow::Result<(Vec<PgConnection>, f64)> {
    let count = connections.len() * rows.len();
    let begin = clock::monotonic();
    let inserting: Vec<_> = connections
        .into_iter()
        .map(|mut connection| {
            let rows = Arc::clone(rows);
            tokio::spawn(async move {
                for row in rows.iter() {
                    sqlx::query(INSERT).bind(&row[..]).execute(&mut connection).await?;
                }
                Ok::<_, sqlx::Error>(connection)
            })
        })
        .collect();
    let mut back = Vec::with_capacity(inserting.len());
    for task in inserting {
        back.push(task.await??);
    }
    Ok((back, count as f64 / begin.elapsed().as_secs_f64()))
}
