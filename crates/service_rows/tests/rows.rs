//! Runs, threads and items on SQLite, through the same statements that Postgres is asked.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use chrono::TimeDelta;
use perihelion_database::{Database, query};
use perihelion_service_rows::{
    Begin, Cancel, ItemFilter, Kept, RunStatus, ThreadFilter, ThreadOrder,
};
use serde_json::json;
use uuid::Uuid;

mod support;
use support::{now, run};

/// A database with one thread.
async fn with_thread() -> (tempfile::TempDir, Kept, Uuid) {
    let place = tempfile::tempdir().unwrap();
    let database = Database::open(place.path().join("t.db").to_str().unwrap()).await.unwrap();
    let thread = Uuid::now_v7();
    let insert = query(
        "INSERT INTO thread (id, created_at, updated_at, graph, namespace, tenant) VALUES ($1, $2, $2, 'swarm', '', 'default')",
    );
    database.execute(&insert.bind(thread).bind(now())).await.unwrap();
    (place, Kept::new(database, "default"), thread)
}

#[tokio::test]
async fn of_a_thread_one_run_is_driven_and_the_others_wait_in_order() {
    let (_place, kept, thread) = with_thread().await;
    let begin = Begin { owner: "one", now: now() };
    let first = kept.add_run(&run(thread), begin).await.unwrap();
    let second = kept
        .add_run(&run(thread), Begin { now: now() + TimeDelta::seconds(1), ..begin })
        .await
        .unwrap();
    assert_eq!((first.status, second.status), (RunStatus::Running, RunStatus::Pending));
    assert_eq!((first.base_step, first.first_event), (Some(0), Some(0)));
    assert!(kept.begin_next(thread, begin).await.unwrap().is_none(), "the first is under way");
    assert!(kept.end_run(first.id, RunStatus::Success, None, now()).await.unwrap());
    assert!(!kept.end_run(first.id, RunStatus::Error, None, now()).await.unwrap(), "it has ended");
    let later = Begin { owner: "two", now: now() + TimeDelta::seconds(2) };
    let begun = kept.begin_next(thread, later).await.unwrap().unwrap();
    assert_eq!((begun.id, begun.owner.as_deref(), begun.attempt), (second.id, Some("two"), 1));
}

#[tokio::test]
async fn a_run_is_taken_over_once_and_only_from_who_was_seen() {
    let (_place, kept, thread) = with_thread().await;
    let first = kept.add_run(&run(thread), Begin { owner: "dead", now: now() }).await.unwrap();
    let begin = Begin { owner: "alive", now: now() + TimeDelta::seconds(1) };
    assert!(
        !kept.take_over(&first, TimeDelta::seconds(30), begin).await.unwrap(),
        "it was heard of lately"
    );
    assert!(kept.take_over(&first, TimeDelta::zero(), begin).await.unwrap());
    assert!(
        !kept.take_over(&first, TimeDelta::zero(), begin).await.unwrap(),
        "it is another one's now"
    );
    assert!(kept.ask_to_cancel(first.id, Cancel::Rollback).await.unwrap());
    assert_eq!(kept.to_cancel("alive").await.unwrap(), [(first.id, Cancel::Rollback)]);
}

#[tokio::test]
async fn threads_are_found_by_what_was_noted_of_them_and_by_their_graph_alone() {
    let (_place, kept, thread) = with_thread().await;
    let filter = |metadata| ThreadFilter {
        graphs: vec!["swarm".into()],
        ids: Vec::new(),
        metadata,
        statuses: vec!["idle".into()],
        order: ThreadOrder::Updated,
        ascending: false,
        limit: 10,
        offset: 0,
    };
    assert_eq!(kept.threads(&filter(json!({ "graph_id": "swarm" }))).await.unwrap().1, 1);
    kept.note_thread(thread, &json!({ "user": "u1", "n": 1 }), None, now()).await.unwrap();
    kept.note_thread(thread, &json!({ "n": 2 }), None, now()).await.unwrap();
    let (found, _) = kept.threads(&filter(json!({ "user": "u1" }))).await.unwrap();
    assert_eq!(found[0].meta.metadata, json!({ "user": "u1", "n": 2 }));
    assert_eq!(kept.count_threads(&filter(json!({ "user": "u2" }))).await.unwrap(), 0);
    let other = Kept::new(Database::open("memory:").await.unwrap(), "other");
    assert_eq!(other.count_threads(&filter(json!({}))).await.unwrap(), 0);
}

#[tokio::test]
async fn items_are_found_below_a_path_and_not_below_one_that_begins_alike() {
    let (_place, kept, _) = with_thread().await;
    let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    for (names, key) in [(["a", "b"], "x"), (["ab", "b"], "y")] {
        kept.put_item(&path(&names), key, json!({ "v": 1 }), now()).await.unwrap();
    }
    let found = kept
        .items(&ItemFilter { prefix: path(&["a"]), limit: 10, ..ItemFilter::default() })
        .await
        .unwrap();
    assert_eq!(found.iter().map(|item| item.key.as_str()).collect::<Vec<_>>(), ["x"]);
    let filter = Some(json!({ "v": 2 }));
    let none =
        kept.items(&ItemFilter { filter, limit: 10, ..ItemFilter::default() }).await.unwrap();
    assert!(none.is_empty());
    assert_eq!(kept.namespaces().await.unwrap(), [path(&["a", "b"]), path(&["ab", "b"])]);
}
