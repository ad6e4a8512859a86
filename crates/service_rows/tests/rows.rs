//! Runs, threads and items on SQLite, through the same statements that Postgres is asked.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use chrono::TimeDelta;
use perihelion_database::{Database, query};
use perihelion_service_rows::{
    Begin, Cancel, Ended, Item, ItemFilter, Kept, Multitask, NewDelivery, NewRun, RunStatus,
    ThreadFilter, ThreadOrder,
};
use serde_json::json;
use uuid::Uuid;

#[path = "support/items.rs"]
mod items;
mod support;
use items::item;
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
async fn one_run_of_a_thread_is_driven_and_later_runs_wait_in_order() {
    let (_place, kept, thread) = with_thread().await;
    let begin = Begin { owner: "one", now: now() };
    let first = kept.add_run(&run(thread), begin).await.unwrap().unwrap();
    let second = kept
        .add_run(&run(thread), Begin { now: now() + TimeDelta::seconds(1), ..begin })
        .await
        .unwrap()
        .unwrap();
    assert_eq!((first.status, second.status), (RunStatus::Running, RunStatus::Pending));
    assert_eq!((first.base_step, first.first_event), (Some(0), Some(0)));
    assert!(kept.begin_next(thread, begin).await.unwrap().is_none(), "the first is under way");
    let ended = Ended::new(RunStatus::Success);
    assert!(kept.end_run(first.id, ended, now()).await.unwrap());
    let again = Ended::new(RunStatus::Error);
    assert!(!kept.end_run(first.id, again, now()).await.unwrap(), "it has ended");
    let later = Begin { owner: "two", now: now() + TimeDelta::seconds(2) };
    let begun = kept.begin_next(thread, later).await.unwrap().unwrap();
    assert_eq!((begun.id, begun.owner.as_deref(), begun.attempt), (second.id, Some("two"), 1));
}

#[tokio::test]
async fn a_lost_run_is_claimed_once_and_only_from_its_last_seen_owner() {
    let (_place, kept, thread) = with_thread().await;
    let first = kept.add_run(&run(thread), Begin { owner: "dead", now: now() }).await.unwrap();
    let first = first.unwrap();
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
    let cancelled = kept.ask_to_cancel(first.id, Cancel::Rollback, now()).await.unwrap();
    assert_eq!(cancelled, Some(RunStatus::Running));
    assert_eq!(kept.to_cancel("alive").await.unwrap(), [(first.id, Cancel::Rollback)]);
}

#[tokio::test]
async fn an_unstarted_run_waits_again_and_a_run_with_a_pending_stop_ends() {
    let (place, kept, thread) = with_thread().await;
    let begin = Begin { owner: "one", now: now() };
    let pause = TimeDelta::zero();
    let first = kept.add_run(&run(thread), begin).await.unwrap().unwrap();
    kept.put_back(first.id, "another", now(), pause).await.unwrap();
    assert_eq!(kept.run_status(thread, first.id).await.unwrap(), Some(RunStatus::Running));
    kept.put_back(first.id, "one", now(), pause).await.unwrap();
    let again = Begin { now: now() + TimeDelta::seconds(1), ..begin };
    let begun = kept.begin_next(thread, again).await.unwrap().unwrap();
    assert_eq!((begun.id, begun.attempt), (first.id, 1), "nobody has driven it before");
    // One that was taken over is known as such, and by its first step.
    let later = Begin { owner: "two", now: now() + TimeDelta::seconds(2) };
    assert!(kept.take_over(&begun, TimeDelta::zero(), later).await.unwrap());
    let database = Database::open(place.path().join("t.db").to_str().unwrap()).await.unwrap();
    database.execute(&query("UPDATE thread SET head = 5, events = 7")).await.unwrap();
    kept.put_back(first.id, "two", now(), pause).await.unwrap();
    let begun = kept.begin_next(thread, again).await.unwrap().unwrap();
    assert_eq!((begun.attempt, begun.base_step, begun.first_event), (3, Some(0), Some(0)));
    // It is cancelled while it is being put back.
    let cancelled = kept.ask_to_cancel(first.id, Cancel::Interrupt, now()).await.unwrap();
    assert_eq!(cancelled, Some(RunStatus::Running));
    kept.put_back(first.id, "one", now(), pause).await.unwrap();
    assert_eq!(kept.run_status(thread, first.id).await.unwrap(), Some(RunStatus::Interrupted));
    let second = kept.add_run(&run(thread), begin).await.unwrap().unwrap();
    assert_eq!(second.status, RunStatus::Running, "the thread is free");
}

#[tokio::test]
async fn a_thread_with_a_run_rejects_a_second_exclusive_run() {
    let (_place, kept, thread) = with_thread().await;
    let begin = Begin { owner: "one", now: now() };
    let only = || NewRun { multitask: Multitask::Reject, ..run(thread) };
    assert!(kept.add_run(&only(), begin).await.unwrap().is_some());
    assert!(kept.add_run(&only(), begin).await.unwrap().is_none());
    assert!(kept.add_run(&run(thread), begin).await.unwrap().is_some(), "it waits");
}

#[tokio::test]
async fn a_single_run_thread_is_deleted_after_the_run_and_its_deliveries_end() {
    let (_place, kept, thread) = with_thread().await;
    let begin = Begin { owner: "one", now: now() };
    let brief = NewRun { temporary: true, ..run(thread) };
    kept.add_run(&brief, begin).await.unwrap();
    let webhook = NewDelivery::webhook("http://h.test".to_owned());
    kept.add_delivery(brief.id, &webhook, now()).await.unwrap();
    let later = now() + TimeDelta::hours(1);
    assert!(kept.threads_of_one_run(later, 9).await.unwrap().is_empty(), "it is under way");
    kept.end_run(brief.id, Ended::new(RunStatus::Success), now()).await.unwrap();
    assert!(kept.threads_of_one_run(later, 9).await.unwrap().is_empty(), "it is to be sent");
    let due = kept.due_deliveries(later, &[], 9).await.unwrap();
    kept.delivered(due[0].id).await.unwrap();
    let gone = kept.threads_of_one_run(later, 9).await.unwrap();
    assert_eq!(gone.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [thread]);
    let before = now() - TimeDelta::hours(1);
    assert!(kept.threads_of_one_run(before, 9).await.unwrap().is_empty(), "it ended just now");
}

#[tokio::test]
async fn threads_are_found_by_their_metadata_and_by_their_graph() {
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
async fn items_are_found_below_a_path_and_not_below_a_path_with_the_same_prefix() {
    let (_place, kept, _) = with_thread().await;
    let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    for (names, key) in [(["a", "b"], "x"), (["ab", "b"], "y")] {
        kept.put_item(&item(&names, key, json!({ "v": 1 }))).await.unwrap();
    }
    let below = ItemFilter { prefix: path(&["a"]), limit: 10, ..ItemFilter::default() };
    let found = kept.items(&below, now()).await.unwrap();
    assert_eq!(found.iter().map(|item| item.key.as_str()).collect::<Vec<_>>(), ["x"]);
    let filter = Some(json!({ "v": 2 }));
    let other = ItemFilter { filter, limit: 10, ..ItemFilter::default() };
    assert!(kept.items(&other, now()).await.unwrap().is_empty());
    assert_eq!(kept.namespaces(now()).await.unwrap(), [path(&["a", "b"]), path(&["ab", "b"])]);
}

#[tokio::test]
async fn an_expired_item_is_gone_and_can_be_stored_again() {
    let (_place, kept, _) = with_thread().await;
    let end = now() + TimeDelta::minutes(5);
    let later = now() + TimeDelta::minutes(6);
    let short = Item { expires_at: Some(end), ..item(&["a"], "x", json!({ "v": 1 })) };
    kept.put_item(&short).await.unwrap();
    let all = ItemFilter { limit: 10, ..ItemFilter::default() };
    assert_eq!(kept.items(&all, now()).await.unwrap().len(), 1);
    assert!(kept.item(&short.namespace, "x", now()).await.unwrap().is_some());
    assert!(kept.item(&short.namespace, "x", end).await.unwrap().is_none());
    assert!(kept.items(&all, end).await.unwrap().is_empty());
    assert!(kept.namespaces(end).await.unwrap().is_empty());
    // What takes its place is no change of it.
    let again = Item { created_at: later, updated_at: later, ..item(&["a"], "x", json!({})) };
    kept.put_item(&again).await.unwrap();
    assert_eq!(kept.forget_items(later).await.unwrap(), 0);
    let found = kept.item(&again.namespace, "x", later).await.unwrap().unwrap();
    assert_eq!((found.created_at, found.expires_at), (later, None));
    kept.put_item(&Item { expires_at: Some(later), ..again }).await.unwrap();
    assert_eq!(kept.forget_items(later).await.unwrap(), 1);
}
