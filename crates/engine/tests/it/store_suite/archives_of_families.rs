//! Archived threads with subgraphs: one of these is deleted, or has a question that nobody can answer any more.

use perihelion_engine::checkpoint::{Error, Fence, NewThread};
use perihelion_engine::ids::ThreadId;

use super::archives::{Archives, exported, rest, resting};
use super::on_durable_stores;
use super::stores::Fixture;
use super::writer::{Writer, new_thread};

on_durable_stores!(
    the_deletion_of_a_subgraphs_thread_leaves_the_rest_of_an_archived_thread,
    abandoned_questions_keep_no_thread_in_the_database,
    open_questions_of_subgraphs_keep_a_thread_in_the_database,
);

async fn the_deletion_of_a_subgraphs_thread_leaves_the_rest_of_an_archived_thread(on: &Fixture) {
    let archives = Archives::of(on).await;
    let store = archives.store.as_ref();
    for as_seen in [false, true] {
        let thread = resting(&archives.store).await.thread;
        let child = thread.child("team:1:0");
        assert!(archives.archive(thread).await);
        let without = on.another().await;
        let refused = without.delete(child).await;
        assert!(matches!(refused, Err(Error::Archived { .. })), "{refused:?}");
        without.close().await;
        assert_eq!(archives.files(thread).len(), 1);
        if as_seen {
            let seen = store.info(child).await.unwrap();
            store.delete_as_seen(&seen).await.unwrap();
        } else {
            store.delete(child).await.unwrap();
        }
        assert!(matches!(store.info(child).await, Err(Error::UnknownThread(_))));
        assert_eq!(on.own_steps(thread).await, Some(3));
        let before = exported(store, thread).await;
        assert!(archives.archive(thread).await);
        assert_eq!(exported(store, thread).await, before);
    }
    archives.store.close().await;
}

/// Asks in a thread of a subgraph, in the step after its only one.
async fn ask_below(archives: &Archives, top: ThreadId, place: &str) {
    let id = place.split_inclusive('|').fold((top, String::new()), |(id, above), part| {
        let place = above + part;
        (id.child(place.trim_end_matches('|')), place)
    });
    let new = NewThread { id: id.0, root: Some(top), namespace: place.to_owned(), ..new_thread() };
    let made = archives.store.create(new).await.unwrap().id;
    let mut asking = Writer::claim(&archives.store, made).await;
    asking.steps(1).await;
    let fence = Fence::new(made, asking.fence);
    archives.store.record_effects(fence, &[asking.question(0).1]).await.unwrap();
}

async fn abandoned_questions_keep_no_thread_in_the_database(on: &Fixture) {
    let archives = Archives::of(on).await;
    let store = archives.store.as_ref();
    let mut asking = Writer::with_steps(&archives.store, 1).await;
    let fence = Fence::new(asking.thread, asking.fence);
    store.begin_run(fence, asking.run, false).await.unwrap();
    store.record_effects(fence, &[asking.question(0).1]).await.unwrap();
    ask_below(&archives, asking.thread, "team:2:0").await;
    ask_below(&archives, asking.thread, "team:2:0|deep:2:0").await;
    // The step that asked was left for another turn.
    asking.steps(2).await;
    rest(&asking).await;
    assert_eq!(store.open_interrupts(asking.thread).await.unwrap().len(), 3, "their rows stay");
    let before = exported(store, asking.thread).await;
    assert!(archives.archive(asking.thread).await);
    assert_eq!(exported(store, asking.thread).await, before);
    archives.store.close().await;
}

async fn open_questions_of_subgraphs_keep_a_thread_in_the_database(on: &Fixture) {
    let archives = Archives::of(on).await;
    for place in ["team:3:0", "team:3:1|deep:2:0"] {
        let asking = Writer::with_steps(&archives.store, 2).await;
        let fence = Fence::new(asking.thread, asking.fence);
        archives.store.begin_run(fence, asking.run, false).await.unwrap();
        ask_below(&archives, asking.thread, place).await;
        rest(&asking).await;
        assert!(!archives.archive(asking.thread).await, "{place}");
    }
    archives.store.close().await;
}
