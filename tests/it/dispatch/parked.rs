//! Ten thousand threads that wait for people, and a restart of everything.

use std::sync::Arc;

use futures::stream::{self, StreamExt};
use perihelion::checkpoint::{self, Store, ThreadFilter, ThreadStatus};
use perihelion::dispatch::{self, Scope};
use perihelion::graph::{Context, Graph, node_fn};
use perihelion::ids::ThreadId;
use perihelion::runner::{RunOptions, RunResult};
use serde_json::json;
use sqlx::Connection as _;

use crate::runner::world::*;
use crate::support::postgres::Postgres;

const THREADS: usize = 10_000;

/// In a file each of a thread's writes waits for the disk.
const THREADS_IN_A_FILE: usize = 2_000;

fn asking() -> Arc<Graph<Story>> {
    graph(|graph| {
        let ask = node_fn(|ctx: Context<Story>| async move {
            let answer = ctx.interrupt("clarification", json!({ "question": "which?" })).await?;
            Ok(say(answer.as_str().unwrap_or("?")))
        });
        graph.node("a", ask).entry("a")
    })
}

async fn park(store: &Arc<dyn Store>, count: usize) -> Vec<ThreadId> {
    let runner = runner(&asking(), store);
    let world = World::default();
    stream::iter(0..count)
        .map(|_| async {
            let thread = world.thread(&runner).await;
            start(&runner, thread).await;
            thread
        })
        .buffer_unordered(16)
        .collect()
        .await
}

/// Returns how many connections the server has, but for the one that asks.
async fn connections(url: &str) -> i64 {
    let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
    let count = sqlx::query_scalar(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    connection.close().await.unwrap();
    count
}

async fn answer_and_finish(url: &str, parked: usize, threads: &[ThreadId]) {
    let store = checkpoint::open(url).await.unwrap();
    let filter = ThreadFilter { status: Some(ThreadStatus::Interrupted), ..Default::default() };
    assert_eq!(store.list(&filter).await.unwrap().len(), parked);
    let scope = Scope { graphs: vec!["story".to_owned()], except_tenant: None, thorough: true };
    let dispatcher = dispatch::open(url, Arc::clone(&store), scope).unwrap();
    assert!(dispatcher.next().await.unwrap().is_none(), "nobody is called to a thread that waits");

    let runner = runner(&asking(), &store);
    for thread in threads {
        let open = runner.open_interrupts(*thread).await.unwrap();
        runner.answer(*thread, open[0].id, &json!("this one")).await.unwrap();
    }
    let mut finished = 0;
    while let Some(wake) = dispatcher.next().await.unwrap() {
        // On Postgres a thread may be found by looking before the call to it is taken from the queue.
        let woken = runner.wake(wake.thread, RunOptions::default()).await.unwrap();
        let Some(outcome) = woken else { continue };
        assert_eq!((outcome.result, lines(&outcome.state)[1]), (RunResult::Done, "this one"));
        finished += 1;
    }
    assert_eq!(finished, threads.len());
    assert_eq!(store.list(&filter).await.unwrap().len(), parked - threads.len());
    dispatcher.close().await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_in_a_file_survive_a_restart_and_wait_for_nobody_but_people() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("threads.db").display());
    let store = checkpoint::open(&url).await.unwrap();
    let threads = park(&store, THREADS_IN_A_FILE).await;
    store.close().await;
    drop(store);
    answer_and_finish(&url, THREADS_IN_A_FILE, &threads[..500]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_threads_on_postgres_survive_a_crash_of_the_server() {
    // A server of its own: it is crashed.
    let mut server = Postgres::start();
    let url = server.url("postgres");
    let store = checkpoint::open(&url).await.unwrap();
    let threads = park(&store, THREADS).await;
    store.close().await;
    drop(store);
    // The server takes a moment to see that its clients have gone.
    let started = perihelion::clock::monotonic();
    while connections(&url).await > 0 {
        let is_early = started.elapsed() < std::time::Duration::from_secs(60);
        assert!(is_early, "a thread that waits holds no connection");
    }
    server.restart();
    answer_and_finish(&url, THREADS, &threads[..500]).await;
}
