//! Runs, threads, items and assistants on SQLite; on both databases where their statements differ.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use chrono::TimeDelta;
use perihelion_database::{Database, query};
use perihelion_service_rows::{
    Begin, Cancel, Ended, Item, ItemFilter, Kept, Multitask, NewDelivery, NewRun, Position, Run,
    RunStatus, ThreadFilter,
};
use serde_json::json;
use uuid::Uuid;

#[path = "support/databases.rs"]
mod databases;
#[path = "support/items.rs"]
mod items;
mod support;
use databases::{databases, thread_in};
use items::{assistant, item};
use support::{now, run};

/// A database with one thread.
async fn with_thread() -> (tempfile::TempDir, Kept, Uuid) {
    let (place, database, thread) = database_with_thread().await;
    (place, Kept::new(database, "default"), thread)
}

async fn database_with_thread() -> (tempfile::TempDir, Database, Uuid) {
    let place = tempfile::tempdir().unwrap();
    let database = Database::open(place.path().join("t.db").to_str().unwrap()).await.unwrap();
    let thread = thread_in(&database).await;
    (place, database, thread)
}

/// Returns the position of a thread without an open run.
fn at(step: u64) -> Option<Position> {
    Some(Position { step, open: Vec::new() })
}

/// Begins the next run of a thread.
async fn begin_next(kept: &Kept, thread: Uuid, begin: Begin<'_>) -> Option<Run> {
    let next = kept.next_run(thread, begin.now).await.unwrap()?;
    kept.begin_run(&next, begin).await.unwrap()
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
    assert!(begin_next(&kept, thread, begin).await.is_none(), "the first is under way");
    let ended = Ended::new(RunStatus::Success);
    assert!(kept.end_run(first.thread, first.id, ended, now()).await.unwrap().is_some());
    let again = Ended::new(RunStatus::Error);
    assert!(
        kept.end_run(first.thread, first.id, again, now()).await.unwrap().is_none(),
        "it has ended"
    );
    let later = Begin { owner: "two", now: now() + TimeDelta::seconds(2) };
    let begun = begin_next(&kept, thread, later).await.unwrap();
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
    let cancelled =
        kept.ask_to_cancel(first.thread, first.id, Cancel::Rollback, now()).await.unwrap();
    assert_eq!(cancelled, Some(RunStatus::Running));
    assert_eq!(kept.runs_of("alive").await.unwrap(), [(first.id, Some(Cancel::Rollback))]);
}

#[tokio::test]
async fn an_unstarted_run_waits_again_unless_it_is_to_stop() {
    let (place, kept, thread) = with_thread().await;
    let begin = Begin { owner: "one", now: now() };
    let pause = TimeDelta::zero();
    let first = kept.add_run(&run(thread), begin).await.unwrap().unwrap();
    kept.put_back(first.thread, first.id, "another", now(), pause).await.unwrap();
    assert_eq!(kept.run_status(thread, first.id).await.unwrap(), Some(RunStatus::Running));
    kept.put_back(first.thread, first.id, "one", now(), pause).await.unwrap();
    let again = Begin { now: now() + TimeDelta::seconds(1), ..begin };
    let begun = begin_next(&kept, thread, again).await.unwrap();
    assert_eq!((begun.id, begun.attempt), (first.id, 1), "nobody has driven it before");
    // One that was taken over is known as such, and by its first step.
    let later = Begin { owner: "two", now: now() + TimeDelta::seconds(2) };
    assert!(kept.take_over(&begun, TimeDelta::zero(), later).await.unwrap());
    let database = Database::open(place.path().join("t.db").to_str().unwrap()).await.unwrap();
    database.execute(&query("UPDATE thread SET head = 5, events = 7")).await.unwrap();
    kept.put_back(first.thread, first.id, "two", now(), pause).await.unwrap();
    let begun = begin_next(&kept, thread, again).await.unwrap();
    assert_eq!((begun.attempt, begun.base_step, begun.first_event), (3, Some(0), Some(0)));
    // It is cancelled while it is being put back.
    let cancelled =
        kept.ask_to_cancel(first.thread, first.id, Cancel::Interrupt, now()).await.unwrap();
    assert_eq!(cancelled, Some(RunStatus::Running));
    assert!(
        !kept.put_back(first.thread, first.id, "one", now(), pause).await.unwrap(),
        "its process ends it"
    );
    assert_eq!(kept.run_status(thread, first.id).await.unwrap(), Some(RunStatus::Running));
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
async fn of_two_processes_with_an_answer_to_one_question_only_one_begins_a_run() {
    let (_place, kept, thread) = with_thread().await;
    let answer = |step| NewRun { only_at: at(step), ..run(thread) };
    let by = |owner| Begin { owner, now: now() };
    assert!(kept.add_run(&answer(7), by("one")).await.unwrap().is_none(), "it moved on");
    let first = kept.add_run(&answer(0), by("one")).await.unwrap().unwrap();
    assert!(kept.add_run(&answer(0), by("other")).await.unwrap().is_none(), "it is answered");
    kept.end_run(first.thread, first.id, Ended::new(RunStatus::Interrupted), now()).await.unwrap();
    assert!(kept.add_run(&answer(0), by("other")).await.unwrap().is_some(), "it was not answered");
}

#[tokio::test]
async fn an_answer_waits_for_a_thread_that_a_process_without_a_run_holds() {
    let (_place, database, thread) = database_with_thread().await;
    let taken = query("UPDATE thread SET owner = 'a command', lease_until = $1 WHERE id = $2");
    let taken = taken.bind(now() + TimeDelta::hours(1)).bind(thread);
    database.execute(&taken).await.unwrap();
    let kept = Kept::new(database, "default");
    let answer = NewRun { only_at: at(0), ..run(thread) };
    let waits = kept.add_run(&answer, Begin { owner: "one", now: now() }).await.unwrap().unwrap();
    assert_eq!((waits.status, waits.owner), (RunStatus::Pending, None));
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
    assert!(kept.threads_of_one_run(later, 9, 0).await.unwrap().is_empty(), "it is under way");
    kept.end_run(brief.thread, brief.id, Ended::new(RunStatus::Success), now()).await.unwrap();
    assert!(kept.threads_of_one_run(later, 9, 0).await.unwrap().is_empty(), "it is to be sent");
    let due = kept.due_deliveries(later, &[], 9).await.unwrap();
    kept.delivered(due[0].id).await.unwrap();
    let gone = kept.threads_of_one_run(later, 9, 0).await.unwrap();
    assert_eq!(gone.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [thread]);
    let before = now() - TimeDelta::hours(1);
    assert!(kept.threads_of_one_run(before, 9, 0).await.unwrap().is_empty(), "it ended just now");
}

#[tokio::test]
async fn threads_are_found_by_their_metadata_and_by_their_graph() {
    let (_place, kept, thread) = with_thread().await;
    let filter = |metadata| ThreadFilter {
        metadata,
        statuses: vec!["idle".into()],
        limit: 10,
        ..ThreadFilter::default()
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
    for (database, _place, _server) in databases().await {
        let kept = Kept::new(database, "default");
        for names in [&["ab"][..], &["a", "c"], &["a"], &["a", "b"]] {
            kept.put_item(&item(names, "k", json!({}))).await.unwrap();
        }
        let paths = [path(&["a"]), path(&["a", "b"]), path(&["a", "c"]), path(&["ab"])];
        assert_eq!(
            kept.namespaces(&[], &[], 9, now()).await.unwrap(),
            paths,
            "each next to those below it"
        );
    }
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
    assert!(kept.namespaces(&[], &[], 9, end).await.unwrap().is_empty());
    // What takes its place is no change of it.
    let again = Item { created_at: later, updated_at: later, ..item(&["a"], "x", json!({})) };
    kept.put_item(&again).await.unwrap();
    assert_eq!(kept.forget_items(later).await.unwrap(), 0);
    let found = kept.item(&again.namespace, "x", later).await.unwrap().unwrap();
    assert_eq!((found.created_at, found.expires_at), (later, None));
    kept.put_item(&Item { expires_at: Some(later), ..again }).await.unwrap();
    assert_eq!(kept.forget_items(later).await.unwrap(), 1);
}

/// Opens a database of each kind, with what must live as long as it.
/// Both databases hold what `@>` of Postgres says.
#[tokio::test]
async fn both_databases_find_the_same_metadata() {
    let there = json!({
        "a": { "x": 1, "y": { "z": [1, "two", { "k": true }] } }, "n": 1.5, "t": true, "o": null, "s": "Ä\"b", "": 0,
        "$d.e": {}, "l": [],
    });
    for (database, _place, _server) in databases().await {
        let kept = Kept::new(database, "default");
        kept.put_item(&item(&["a"], "k", there.clone())).await.unwrap();
        for (wanted, is_found) in [
            (json!({}), true),
            (json!({ "a": { "x": 1 } }), true),
            (json!({ "a": { "x": 1.0 } }), true),
            (json!({ "a": { "x": "1" } }), false),
            (json!({ "a": { "y": { "z": [{ "k": true }, 1] } } }), true),
            (json!({ "a": { "y": { "z": [2] } } }), false),
            (json!({ "a": { "y": { "z": [[1]] } } }), false),
            (json!({ "a": {} }), true),
            (json!({ "a": [] }), false),
            (json!({ "n": 1.5 }), true),
            (json!({ "t": true }), true),
            (json!({ "t": 1 }), false),
            (json!({ "t": "true" }), false),
            (json!({ "o": null }), true),
            (json!({ "o": false }), false),
            (json!({ "missing": null }), false),
            (json!({ "s": "Ä\"b" }), true),
            (json!({ "": 0 }), true),
            (json!({ "$d.e": {} }), true),
            (json!({ "l": [] }), true),
            (json!({ "l": [1] }), false),
        ] {
            let filter =
                ItemFilter { filter: Some(wanted.clone()), limit: 9, ..Default::default() };
            let found = kept.items(&filter, now()).await.unwrap();
            assert_eq!(found.len(), usize::from(is_found), "{wanted}");
        }
    }
}

#[tokio::test]
async fn both_databases_find_the_same_words_in_any_letters_of_any_language() {
    for (database, _place, server) in databases().await {
        // Some locales of Postgres know capital letters of English only.
        let knows = query("SELECT lower('Ä') = 'ä'");
        let knows = database.fetch_optional(&knows).await.unwrap().unwrap();
        let knows = server.is_none() || knows.get::<bool>(0).unwrap();
        let kept = Kept::new(database, "default");
        kept.put_item(&item(&["a"], "Äpfel_50%", json!({ "text": "ЁЛКА (a.b) \u{130}" })))
            .await
            .unwrap();
        for (words, is_found) in [
            ("äpfel", knows),
            ("ÄPFEL_50%", true),
            ("l_5", true),
            ("pf%l", false),
            ("a_b", false),
            ("A.B)", true),
            ("ёлка", knows),
            ("ЁЛКА", true),
            ("\\", false),
            ("birne", false),
        ] {
            let filter = ItemFilter { words: Some(words.into()), limit: 9, ..Default::default() };
            let found = kept.items(&filter, now()).await.unwrap();
            assert_eq!(found.len(), usize::from(is_found), "{words}");
        }
    }
}

#[tokio::test]
async fn both_databases_merge_the_metadata_of_a_thread_field_by_field() {
    for (database, _place, _server) in databases().await {
        let thread = thread_in(&database).await;
        let kept = Kept::new(database.clone(), "default");
        for change in [
            json!({ "a": { "x": 1 }, "b": "stays", "c": 1, "": [true] }),
            json!({ "a": { "y": 2 }, "c": null, "d\"e": "ü", "f.$": 1.5 }),
        ] {
            kept.note_thread(thread, &change, Some(&change), now()).await.unwrap();
        }
        let meta = kept.thread_meta(thread).await.unwrap();
        let both = json!({ "a": { "y": 2 }, "b": "stays", "c": null, "": [true], "d\"e": "ü", "f.$": 1.5 });
        assert_eq!((meta.metadata, meta.config), (both.clone(), both));
        // A thread of which nothing is noted lacks every field.
        thread_in(&database).await;
        for (field, found) in [("a", 1), ("d\"e", 1), ("f.$", 1), ("x", 2), ("$.a", 2)] {
            let without = vec![field.to_owned()];
            let filter = ThreadFilter { without, limit: 9, ..ThreadFilter::default() };
            assert_eq!(kept.threads(&filter).await.unwrap().1, found, "{field}");
            assert_eq!(kept.count_threads(&filter).await.unwrap(), found, "{field}");
        }
    }
}

/// The version that is being added when an older one is chosen does not stay the latest one beside it.
#[tokio::test]
async fn an_assistant_has_one_latest_version() {
    for (database, _place, _server) in databases().await {
        let kept = Kept::new(database, "default");
        let mut new = assistant();
        kept.put_assistant(&new).await.unwrap();
        for _ in 0..20 {
            new.version += 1;
            let (added, chosen) =
                tokio::join!(kept.put_assistant(&new), kept.choose_assistant(new.id, 1));
            added.unwrap();
            assert!(chosen.unwrap());
            assert_eq!(kept.assistants(&Default::default()).await.unwrap().len(), 1);
        }
        assert!(!kept.choose_assistant(new.id, 99).await.unwrap());
        assert_eq!(kept.assistants(&Default::default()).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn the_messages_of_a_run_that_is_stored_again_are_sent_once() {
    for (database, _place, _server) in databases().await {
        let run = run(thread_in(&database).await);
        let kept = Kept::new(database, "default");
        let webhook = NewDelivery::webhook("http://a.test".to_owned());
        let started = NewDelivery { is_under_way: true, ..webhook.clone() };
        for new in [&webhook, &started, &webhook] {
            kept.add_delivery(run.id, new, now()).await.unwrap();
        }
        kept.add_run(&run, Begin { owner: "one", now: now() }).await.unwrap();
        kept.end_run(run.thread, run.id, Ended::new(RunStatus::Success), now()).await.unwrap();
        assert_eq!(kept.due_deliveries(now(), &[], 9).await.unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_run_that_begins_later_than_one_asked_for_after_it_is_followed_too() {
    for (database, _place, _server) in databases().await {
        let thread = thread_in(&database).await;
        let kept = Kept::new(database, "default");
        let begin = |at| Begin { owner: "one", now: now() + TimeDelta::seconds(at) };
        let early = NewRun { due_at: begin(9).now, ..run(thread) };
        kept.add_run(&early, begin(0)).await.unwrap();
        let quick = run(thread);
        kept.add_run(&quick, begin(1)).await.unwrap();
        assert_eq!(begin_next(&kept, thread, begin(1)).await.unwrap().id, quick.id);
        kept.end_run(quick.thread, quick.id, Ended::new(RunStatus::Success), now()).await.unwrap();
        let next = async |seen: &[Uuid]| kept.next_unseen(thread, 0, seen).await.unwrap();
        assert_eq!(next(&[]).await.unwrap().id, quick.id);
        assert!(next(&[quick.id]).await.is_none());
        assert_eq!(begin_next(&kept, thread, begin(9)).await.unwrap().id, early.id);
        assert_eq!(next(&[quick.id]).await.unwrap().id, early.id, "neither has made an event");
    }
}
