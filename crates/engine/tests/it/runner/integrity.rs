//! Rows that were lost or edited are noticed, and named.

use perihelion_engine::checkpoint::Error as StoreError;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{Error, Runner, compact};

use super::damage::{below, four_steps, sql};
use super::world::*;
use crate::store_suite::{on_durable_stores, stores::Fixture};

on_durable_stores!(
    an_edited_delta_is_noticed_and_its_step_named,
    an_edited_frontier_is_noticed_even_behind_a_snapshot,
    a_missing_step_is_detected_at_any_position,
    a_damaged_snapshot_is_noticed,
    a_damaged_thread_is_not_exported_as_if_it_were_whole,
    a_family_of_which_a_member_names_another_root_or_place_is_not_exported,
    the_thread_of_a_subgraph_is_deleted_with_the_step_that_ran_it,
);

async fn damaged_at(runner: &Runner<Story>, thread: ThreadId) -> (u64, String) {
    let error = runner.state(thread, None).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&thread.to_string()) && text.contains("backup"), "{text}");
    match error {
        Error::Store(StoreError::Corrupt { seq, reason, .. }) => (seq, reason.to_string()),
        other => panic!("{other:?}"),
    }
}

async fn an_edited_delta_is_noticed_and_its_step_named(on: &Fixture) {
    let (runner, thread) = four_steps(on, false).await;
    let other =
        "UPDATE step SET delta = (SELECT delta FROM step WHERE thread_id = {thread} AND seq = 2)
        WHERE thread_id = {thread} AND seq = 3";
    sql(on, thread, other).await;
    assert_eq!(damaged_at(&runner, thread).await.0, 3);
    assert!(runner.state(thread, Some(2)).await.is_ok(), "what lies before it can still be read");
}

async fn an_edited_frontier_is_noticed_even_behind_a_snapshot(on: &Fixture) {
    let (runner, thread) = four_steps(on, true).await;
    let snapshot = on.store.load(thread, None).await.unwrap().snapshot.unwrap();
    let other = "UPDATE step SET frontier = (SELECT frontier FROM step WHERE thread_id = {thread} AND seq = 1)
        WHERE thread_id = {thread} AND seq = ";
    sql(on, thread, &format!("{other}{}", snapshot.seq)).await;
    assert_eq!(damaged_at(&runner, thread).await.0, snapshot.seq);
}

async fn a_missing_step_is_detected_at_any_position(on: &Fixture) {
    for missing in 1..=4 {
        let (runner, thread) = four_steps(on, false).await;
        let delete = format!("DELETE FROM step WHERE thread_id = {{thread}} AND seq = {missing}");
        sql(on, thread, &delete).await;
        let (seq, reason) = damaged_at(&runner, thread).await;
        assert_eq!(seq, missing, "{reason}");
    }
}

async fn a_damaged_snapshot_is_noticed(on: &Fixture) {
    let (runner, thread) = four_steps(on, true).await;
    let seq = on.store.load(thread, None).await.unwrap().snapshot.unwrap().seq;
    let cut = "UPDATE snapshot SET state = substr(state, 1, length(state) - 3) WHERE thread_id = {thread}";
    sql(on, thread, cut).await;
    let (damaged, reason) = damaged_at(&runner, thread).await;
    assert!(damaged == seq && reason.contains("snapshot"), "{reason}");
}

/// People export, delete, and import again: the file must be one that can be imported.
async fn a_damaged_thread_is_not_exported_as_if_it_were_whole(on: &Fixture) {
    for damage in [
        "DELETE FROM step WHERE thread_id = {thread} AND seq = 2",
        "DELETE FROM step WHERE thread_id = {thread} AND seq = 4",
        "UPDATE step SET frontier = (SELECT frontier FROM step WHERE thread_id = {thread} AND seq = 1)
            WHERE thread_id = {thread} AND seq = 3",
        "UPDATE thread SET head = 3 WHERE id = {thread}",
        "UPDATE thread SET head = 5 WHERE id = {thread}",
    ] {
        let (_, thread) = four_steps(on, false).await;
        on.store.export(thread).await.unwrap();
        on.store.history(thread, None, 100).await.unwrap();
        sql(on, thread, damage).await;
        let refused = on.store.history(thread, None, 100).await;
        assert!(
            matches!(&refused, Err(StoreError::Corrupt { thread: it, .. }) if *it == thread),
            "{damage}: {refused:?}"
        );
        let refused = on.store.export(thread).await;
        assert!(
            matches!(&refused, Err(StoreError::Corrupt { thread: it, .. }) if *it == thread),
            "{damage}: {refused:?}"
        );
    }
}

/// A team's own thread whose row names another root or place would be left out without a word.
async fn a_family_of_which_a_member_names_another_root_or_place_is_not_exported(on: &Fixture) {
    let other = "UPDATE thread SET root_id = (SELECT t.id FROM thread t
        WHERE t.namespace = '' AND t.id <> thread.root_id ORDER BY t.id LIMIT 1) WHERE id = {thread}";
    let none = "UPDATE thread SET root_id = NULL WHERE id = {thread}";
    let place = "UPDATE thread SET namespace = 'a:3:0' WHERE id = {thread}";
    for damage in [other, none, place] {
        let (_, thread) = four_steps(on, false).await;
        four_steps(on, false).await;
        let child = below(on, thread, "a:2:0").await;
        assert_eq!(on.store.export(thread).await.unwrap().children.len(), 1);
        sql(on, child, damage).await;
        let refused = on.store.export(thread).await;
        assert!(
            matches!(&refused, Err(StoreError::Corrupt { thread: it, .. }) if *it == thread),
            "{damage}: {refused:?}"
        );
    }
}

/// Nobody could find it any more by the steps that are kept.
async fn the_thread_of_a_subgraph_is_deleted_with_the_step_that_ran_it(on: &Fixture) {
    let (_, thread) = four_steps(on, false).await;
    let [old, young] = [below(on, thread, "a:2:0").await, below(on, thread, "c:4:0").await];
    let deep = below(on, old, "a:2:0|deep:3:0").await;
    compact::<Story>(on.store.as_ref(), thread, 2).await.unwrap();
    for gone in [old, deep] {
        let found = on.store.info(gone).await;
        assert!(matches!(found, Err(StoreError::UnknownThread(_))), "{found:?}");
    }
    let dump = on.store.export(thread).await.unwrap();
    assert_eq!(dump.children.iter().map(|one| one.info.id).collect::<Vec<_>>(), [young]);
}
