//! What becomes of old events; each test has a database of its own, since it clears away what it finds.

use std::sync::Arc;
use std::time::Duration;

use perihelion_engine::checkpoint::{self, Fence, RunEnd, Store, ThreadStatus};
use perihelion_engine::runner::RunOptions;

use super::{DAY, all, steps};
use crate::runner::world::*;
use crate::store_suite::stores;
use crate::store_suite::writer::Writer;
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
    let run = checkpoint::RunStatus::Done;
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
}
