//! Making and listing threads.

use perihelion_engine::checkpoint::Claim;
use perihelion_engine::{
    checkpoint::{Error, NewThread, ThreadFilter, ThreadStatus},
    ids::ThreadId,
};

use super::{
    on_every_store_sealed_too,
    stores::Fixture,
    writer::{Writer, new_thread},
};

on_every_store_sealed_too!(
    a_new_thread_is_idle_and_empty,
    an_id_is_used_once,
    a_subgraphs_thread_needs_its_root,
    threads_are_listed_newest_first_and_filtered,
    threads_at_the_top_are_counted_by_status,
);

async fn a_new_thread_is_idle_and_empty(on: &Fixture) {
    let new = NewThread {
        title: Some("Orders of \0 May 😀".to_owned()),
        tenant: "acme".to_owned(),
        ..new_thread()
    };
    let made = on.store.create(new.clone()).await.unwrap();
    assert_eq!((made.head, made.fence, made.status), (0, 0, ThreadStatus::Idle));
    assert_eq!((made.graph.as_str(), made.tenant.as_str()), ("swarm", "acme"));
    assert_eq!((&made.owner, &made.error, made.forked_from), (&None, &None, None));
    assert!(made.title.as_deref().unwrap().ends_with("May 😀"));
    assert_eq!(on.store.info(new.id).await.unwrap(), made);
    let loaded = on.store.load(new.id, None).await.unwrap();
    assert!(loaded.steps.is_empty() && loaded.snapshot.is_none() && loaded.pending.is_empty());
}

async fn an_id_is_used_once(on: &Fixture) {
    let writer = Writer::with_steps(&on.store, 1).await;
    let again = NewThread { id: writer.thread, ..new_thread() };
    let refused = on.store.create(again).await;
    assert!(matches!(refused, Err(Error::ThreadExists(id)) if id == writer.thread), "{refused:?}");
    assert_eq!(on.store.info(writer.thread).await.unwrap().head, 1);
}

async fn a_subgraphs_thread_needs_its_root(on: &Fixture) {
    let root = ThreadId::new();
    let refused = on.store.create(NewThread { root: Some(root), ..new_thread() }).await;
    assert!(matches!(refused, Err(Error::UnknownThread(id)) if id == root), "{refused:?}");
}

async fn threads_are_listed_newest_first_and_filtered(on: &Fixture) {
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(on.store.create(new_thread()).await.unwrap().id);
    }
    let child = NewThread { root: Some(ids[0]), namespace: "t:1:0".to_owned(), ..new_thread() };
    let child = on.store.create(child).await.unwrap().id;
    // The oldest is touched last.
    on.store.claim(Claim::new(ids[0], "a", super::writer::TTL)).await.unwrap();

    let listed = async |filter: ThreadFilter| -> Vec<ThreadId> {
        let found = on.store.list(&filter).await.unwrap();
        assert!(found.is_sorted_by_key(|info| std::cmp::Reverse(info.updated_at)));
        let ours = |id: &ThreadId| ids.contains(id) || *id == child;
        found.into_iter().map(|info| info.id).filter(ours).collect()
    };
    assert_eq!(listed(ThreadFilter::default()).await, [ids[0], ids[2], ids[1]]);
    let all = ThreadFilter { with_children: true, ..ThreadFilter::default() };
    assert_eq!(listed(all).await, [ids[0], child, ids[2], ids[1]]);
    let below = ThreadFilter { root: Some(ids[0]), ..ThreadFilter::default() };
    assert_eq!(listed(below).await, [child]);
    let busy = ThreadFilter { status: Some(ThreadStatus::Busy), ..ThreadFilter::default() };
    assert_eq!(listed(busy).await, [ids[0]]);
    let second = on.store.info(ids[1]).await.unwrap().updated_at;
    let third = on.store.info(ids[2]).await.unwrap().updated_at;
    assert!(third > second);
    let old = ThreadFilter { updated_before: Some(third), ..ThreadFilter::default() };
    assert_eq!(listed(old).await, [ids[1]]);
    let limited = ThreadFilter { limit: Some(2), ..ThreadFilter::default() };
    assert!(on.store.list(&limited).await.unwrap().len() == 2);
}

async fn threads_at_the_top_are_counted_by_status(on: &Fixture) {
    let (store, _database) = on.alone().await;
    let count = async |status: ThreadStatus| {
        let counts = store.count_threads().await.unwrap();
        counts.iter().find(|(found, _)| *found == status).map_or(0, |(_, count)| *count)
    };
    assert_eq!((count(ThreadStatus::Idle).await, count(ThreadStatus::Busy).await), (0, 0));
    let first = store.create(new_thread()).await.unwrap().id;
    store.create(new_thread()).await.unwrap();
    let child = NewThread { root: Some(first), namespace: "t:1:0".to_owned(), ..new_thread() };
    store.create(child).await.unwrap();
    store.claim(Claim::new(first, "a", super::writer::TTL)).await.unwrap();
    assert_eq!((count(ThreadStatus::Idle).await, count(ThreadStatus::Busy).await), (1, 1));
    store.close().await;
}
