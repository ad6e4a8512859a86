//! What becomes of old events; each test has a database of its own, since it clears away what it finds.

use std::sync::Arc;
use std::time::Duration;

use perihelion_engine::checkpoint::{
    self, EventRow, Fence, RunEnd, RunStatus, Store, ThreadStatus,
};
use perihelion_engine::runner::RunOptions;
use serde_json::json;

use super::{DAY, all, steps};
use crate::runner::world::*;
use crate::store_suite::stores;
use crate::store_suite::writer::{Writer, encoded};
use perihelion_test_database::postgres::server;

#[tokio::test]
async fn on_memory() {
    check(&stores::memory().await.store).await;
}

#[tokio::test]
async fn on_sqlite() {
    check(&stores::sqlite().await.store).await;
}

#[tokio::test]
async fn on_postgres() {
    let database = server().await.fresh().await;
    check(&checkpoint::open(&database.url).await.unwrap()).await;
}

/// Events of threads at rest go when they are old enough, ids continue, and a thread under way keeps its own.
async fn check(store: &Arc<dyn Store>) {
    let bus: Arc<dyn perihelion_engine::bus::Bus> =
        perihelion_engine::bus::open("memory:", Arc::clone(store), DAY);
    let world = World::default();
    let runner = runner(&graph(|g| g.node("a", world.speaker("a")).entry("a")), store);
    let thread = world.thread(&runner).await;
    let options = || RunOptions { publish: Some(Arc::clone(&bus)), ..RunOptions::default() };
    runner.start(thread, input(), options()).await.unwrap();
    let events = all(&bus, thread).await;
    assert_eq!(store.prune_events(Duration::from_secs(3600), 100).await.unwrap(), 0);

    let busy = Writer::claim(store, thread).await;
    assert_eq!(store.info(thread).await.unwrap().status, ThreadStatus::Busy);
    assert_eq!(store.prune_events(Duration::ZERO, 100).await.unwrap(), 0);
    store.begin_run(Fence::new(thread, busy.fence), busy.run, false).await.unwrap();
    let run = RunStatus::Done;
    let status = ThreadStatus::Idle;
    store
        .end_run(Fence::new(thread, busy.fence), busy.run, RunEnd::new(run, status))
        .await
        .unwrap();

    assert!(store.prune_events(Duration::ZERO, 1).await.unwrap() == 1);
    while store.prune_events(Duration::ZERO, 1).await.unwrap() > 0 {}
    assert_eq!(all(&bus, thread).await, []);
    runner.start(thread, input(), options()).await.unwrap();
    let later = all(&bus, thread).await;
    assert_eq!(later[0].id, events.last().unwrap().id + 1, "no id is given twice");
    assert_eq!((steps(&events), steps(&later)), (vec![1, 2], vec![3, 4]));
    all_old_events_are_dropped(store).await;
}

/// A busy service writes more batches in a minute than one statement drops.
async fn all_old_events_are_dropped(store: &Arc<dyn Store>) {
    let writer = Writer::new(store).await;
    let fence = Fence::new(writer.thread, writer.fence);
    let run = store.begin_run(fence, writer.run, false).await.unwrap().id;
    let body = encoded(&json!([{}]));
    let at = chrono::DateTime::UNIX_EPOCH;
    for first in 1..=1_001 {
        let batch = EventRow { first, count: 1, run, step: 0, body: body.clone(), at };
        store.append_events(fence, &batch).await.unwrap();
    }
    let end = RunEnd::new(RunStatus::Done, ThreadStatus::Idle);
    store.end_run(fence, run, end).await.unwrap();
    perihelion_engine::bus::open("memory:", Arc::clone(store), Duration::ZERO).prune().await;
    let dropping = async {
        while !store.events_after(writer.thread, 0, 1).await.unwrap().is_empty() {
            perihelion_engine::clock::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), dropping).await.unwrap();
}
