//! Measures how long a thread waits for another machine after its lease has run out, and what looking for it costs.
//!
//! Threads are claimed in the name of a machine that nobody here knows to be dead, so that only the lease can
//! tell; one worker's dispatcher looks for them, beside many threads that wait for people. The time is that
//! from the end of the lease to the beginning of the heir's run.

use std::sync::Arc;
use std::time::Duration;

use perihelion::checkpoint::{Claim, Store, WorkFilter};
use perihelion::clock;
use perihelion::dispatch::{self, Scope};
use perihelion::ids::ThreadId;
use perihelion::runner::{RunOptions, Runner};
use serde_json::json;
use sqlx::{Connection, Executor, PgConnection};

use crate::databases::Place;
use crate::figures::{median, rounded};
use crate::graph::build;
use crate::machine;
use crate::options::{Backend, Options};
use crate::star::{warm_up, workload};

/// Threads whose process is lost.
const LOST: usize = 40;

/// Threads that wait for people meanwhile.
const PARKED: usize = 10_000;

const LOOKS: usize = 200;

/// Measures and prints one line.
pub async fn measure(options: Options) -> anyhow::Result<()> {
    let options = &options;
    anyhow::ensure!(options.backend == Backend::Postgres, "other machines need --backend postgres");
    let place = Place::fresh(options).await?;
    let store = place.open().await?;
    warm_up(options, &store).await?;
    let work = workload(options, 1, &[], None)?;
    let runner = Runner::new(build(&work)?, Arc::clone(&store));
    let mut alone = looks(&store, runner.graph().name()).await?;
    park(&runner, place.address()).await?;
    let mut beside = looks(&store, runner.graph().name()).await?;

    let scope = Scope {
        graphs: vec![runner.graph().name().to_owned()],
        except_tenant: None,
        thorough: false,
    };
    let dispatcher = dispatch::open(place.address(), Arc::clone(&store), scope)?;
    let mut lost = Vec::with_capacity(LOST);
    for number in 0..LOST {
        let thread = ThreadId::new();
        runner.create(thread, None).await?;
        runner.submit(thread, work.input("t0")).await?;
        let ttl = Duration::from_millis(1500 + 97 * number as u64);
        let info = store.claim(Claim::new(thread, "elsewhere/boot+pid/1/1/1", ttl)).await?;
        lost.push((thread, info.lease_until.unwrap_or_default()));
    }
    let mut delays = Vec::with_capacity(LOST);
    while delays.len() < LOST {
        let Some(wake) = dispatcher.next().await? else {
            dispatcher.called().await;
            continue;
        };
        let Some((_, until)) = lost.iter().find(|(thread, _)| *thread == wake.thread) else {
            continue;
        };
        if runner.wake(wake.thread, RunOptions::default()).await?.is_some() {
            let runs = store.runs(wake.thread).await?;
            let began = runs.last().map(|run| run.started_at).unwrap_or_default();
            delays.push((began - *until).as_seconds_f64());
        }
    }
    let longest = delays.iter().copied().fold(f64::MIN, f64::max);
    println!(
        "{}",
        json!({
            "bench": "takeover", "engine": "perihelion", "engine_version": env!("CARGO_PKG_VERSION"),
            "backend": options.backend.name(), "threads": LOST, "parked": PARKED,
            "after_lease_s": rounded(median(&mut delays), 3), "after_lease_s_most": rounded(longest, 3),
            "look_us": rounded(median(&mut alone), 1), "look_us_parked": rounded(median(&mut beside), 1),
            "load1": machine::load(), "machine": machine::name(),
        "commit": machine::commit(),
        })
    );
    dispatcher.close().await;
    store.close().await;
    place.remove().await
}

/// Makes threads that wait for people.
async fn park<S: perihelion::graph::State>(
    runner: &Runner<S>,
    address: &str,
) -> anyhow::Result<()> {
    for _ in 0..PARKED {
        runner.create(ThreadId::new(), None).await?;
    }
    let mut connection = PgConnection::connect(address).await?;
    connection.execute("UPDATE thread SET status = 'interrupted' WHERE status = 'idle'").await?;
    connection.execute("VACUUM ANALYZE thread").await?;
    Ok(connection.close().await?)
}

/// Returns the times of looks in microseconds.
async fn looks(store: &Arc<dyn Store>, graph: &str) -> anyhow::Result<Vec<f64>> {
    let wanted = WorkFilter {
        graph: graph.to_owned(),
        except_tenant: None,
        machine: "/boot+pid/".to_owned(),
        queued_for: Duration::ZERO,
        limit: 256,
        skip: 0,
    };
    let mut times = Vec::with_capacity(LOOKS);
    for _ in 0..LOOKS {
        let begin = clock::monotonic();
        store.waiting(&wanted).await?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times)
}
