//! The export cursor: whose traces have not arrived yet.

use perihelion_engine::checkpoint::{Error, Fence, RunEnd, RunStatus, ThreadStatus};
use perihelion_engine::ids::ThreadId;

use super::{on_every_store, stores::Fixture, writer::Writer};

on_every_store!(
    pending_exports_stay_pending_until_they_are_delivered,
    a_run_that_begins_while_the_one_before_is_delivered_stays_pending,
    a_refused_run_has_no_pending_export,
    a_deleted_thread_has_no_pending_export,
    pending_exports_are_listed_page_by_page,
);

/// Begins and ends a run of a thread.
async fn run(on: &Fixture, thread: ThreadId) {
    let writer = Writer::claim(&on.store, thread).await;
    on.store.begin_run(Fence::new(thread, writer.fence), writer.run, true).await.unwrap();
    let done = RunStatus::Done;
    let idle = ThreadStatus::Idle;
    on.store
        .end_run(Fence::new(thread, writer.fence), writer.run, RunEnd::new(done, idle))
        .await
        .unwrap();
}

async fn pending(on: &Fixture, thread: ThreadId) -> Option<(u32, u32)> {
    let outbox = on.store.outbox().unwrap();
    let pending_export = outbox.pending_of(thread).await.unwrap();
    let all = outbox.pending(None, 100_000).await.unwrap();
    assert!(outbox.count().await.unwrap() >= u64::from(pending_export.is_some()));
    assert_eq!(all.into_iter().find(|one| one.thread == thread), pending_export);
    pending_export.map(|pending_export| (pending_export.from_run, pending_export.to_run))
}

async fn pending_exports_stay_pending_until_they_are_delivered(on: &Fixture) {
    let thread = Writer::new(&on.store).await.thread;
    let outbox = on.store.outbox().unwrap();
    assert_eq!(pending(on, thread).await, None);
    run(on, thread).await;
    run(on, thread).await;
    assert_eq!(pending(on, thread).await, Some((1, 2)));
    let another = on.another().await;
    let seen = another.outbox().unwrap().pending_of(thread).await.unwrap().unwrap();
    assert_eq!((seen.from_run, seen.to_run), (1, 2), "as another process sees it");
    outbox.paid(thread, 1).await.unwrap();
    assert_eq!(pending(on, thread).await, Some((2, 2)));
    outbox.paid(thread, 2).await.unwrap();
    assert_eq!(pending(on, thread).await, None);
}

async fn a_run_that_begins_while_the_one_before_is_delivered_stays_pending(on: &Fixture) {
    let thread = Writer::new(&on.store).await.thread;
    run(on, thread).await;
    let writer = Writer::claim(&on.store, thread).await;
    on.store.begin_run(Fence::new(thread, writer.fence), writer.run, true).await.unwrap();
    on.store.outbox().unwrap().paid(thread, 1).await.unwrap();
    assert_eq!(pending(on, thread).await, Some((2, 2)));
}

async fn a_refused_run_has_no_pending_export(on: &Fixture) {
    let zombie = Writer::new(&on.store).await;
    let _heir = Writer::claim(&on.store, zombie.thread).await;
    let refused =
        on.store.begin_run(Fence::new(zombie.thread, zombie.fence), zombie.run, true).await;
    assert!(matches!(refused, Err(Error::Fenced { .. })), "{refused:?}");
    assert_eq!(pending(on, zombie.thread).await, None);
}

async fn a_deleted_thread_has_no_pending_export(on: &Fixture) {
    let thread = Writer::new(&on.store).await.thread;
    run(on, thread).await;
    on.store.delete(thread).await.unwrap();
    assert_eq!(pending(on, thread).await, None);
}

async fn pending_exports_are_listed_page_by_page(on: &Fixture) {
    let mut wanted = Vec::new();
    for _ in 0..5 {
        wanted.push(Writer::new(&on.store).await.thread);
        run(on, wanted[wanted.len() - 1]).await;
    }
    let outbox = on.store.outbox().unwrap();
    let mut after = None;
    let mut listed = Vec::new();
    loop {
        let page = outbox.pending(after.as_ref(), 2).await.unwrap();
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        after = Some(last.clone());
        listed.extend(page.iter().map(|one| one.thread).filter(|one| wanted.contains(one)));
    }
    assert_eq!(listed, wanted, "each once, oldest first");
}
