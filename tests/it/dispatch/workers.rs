//! Workers that take calls at once, on the calls that Postgres keeps.

use std::sync::{Arc, Mutex};

use perihelion::ids::ThreadId;
use perihelion::runner::{RunResult, Runner};
use sqlx::postgres::PgListener;

use super::suite::{calls, graph_named, postgres, speaking, wake};
use crate::runner::world::*;

/// Threads are queued while four workers take calls: each is continued with once, and no call is left, not even to a thread that
/// was deleted or is another graph's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_workers_share_the_queue_and_leave_no_job() {
    let place = postgres().await;
    let mut listener = PgListener::connect(&place.url).await.unwrap();
    listener.listen("perihelion_wake").await.unwrap();
    let world = World::default();
    let runner = runner(&speaking(&world), &place.store);
    let other = Runner::new(graph_named("another", &world), Arc::clone(&place.store));
    let foreign = world.thread(&other).await;
    other.submit(foreign, input()).await.unwrap();
    assert_eq!(listener.recv().await.unwrap().payload(), "", "the call itself is in the table");
    sqlx::raw_sql("SELECT wake_thread(gen_random_uuid())").execute(&mut listener).await.unwrap();
    let submitting = async {
        let mut threads = Vec::new();
        for _ in 0..40 {
            let thread = world.thread(&runner).await;
            runner.submit(thread, input()).await.unwrap();
            threads.push(thread);
        }
        threads
    };
    let dispatchers: Vec<_> = (0..4).map(|_| place.dispatcher()).collect();
    let called = Mutex::new(Vec::new());
    let working = futures::future::join_all(dispatchers.iter().map(async |dispatcher| {
        while called.lock().unwrap().len() < 40 {
            match dispatcher.next().await.unwrap() {
                Some(wake) => wake_and_count(&runner, wake.thread, &called).await,
                None => dispatcher.called().await,
            }
        }
    }));
    let (mut submitted, _) = futures::future::join(submitting, working).await;
    let mut called = called.into_inner().unwrap();
    submitted.sort_unstable();
    called.sort_unstable();
    assert_eq!(called, submitted);
    for dispatcher in dispatchers {
        for late in calls(&dispatcher).await {
            assert_eq!(
                wake(&runner, late.thread).await,
                None,
                "a call to a thread at rest is void"
            );
        }
        dispatcher.close().await;
    }
    let left = sqlx::query_scalar("SELECT thread_id FROM wake_call").fetch_all(&mut listener);
    let left: Vec<uuid::Uuid> = left.await.unwrap();
    assert_eq!(left, [foreign.0], "it waits for a worker of its graph");
    place.store.close().await;
}

async fn wake_and_count(runner: &Runner<Story>, thread: ThreadId, called: &Mutex<Vec<ThreadId>>) {
    if wake(runner, thread).await == Some(RunResult::Done) {
        called.lock().unwrap().push(thread);
    }
}
