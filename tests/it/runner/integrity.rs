//! Rows that were lost or edited are noticed, and named.

use std::str::FromStr;

use perihelion::checkpoint::{Error as StoreError, NewThread};
use perihelion::graph::node_fn;
use perihelion::ids::ThreadId;
use perihelion::runner::{Error, Runner, compact};
use perihelion::telemetry;
use sqlx::ConnectOptions;

use super::world::*;
use crate::store_suite::{
    on_durable_stores,
    stores::{self, Fixture},
};

on_durable_stores!(
    an_edited_delta_is_noticed_and_its_step_named,
    an_edited_frontier_is_noticed_even_behind_a_snapshot,
    a_missing_step_is_detected_at_any_position,
    a_damaged_snapshot_is_noticed,
    a_damaged_thread_is_not_exported_as_if_it_were_whole,
    a_family_of_which_a_member_names_another_root_or_place_is_read_by_nobody,
    the_thread_of_a_subgraph_is_deleted_with_the_step_that_ran_it,
);

/// Runs SQL on the fixture's database, with the thread's id as `{thread}`.
async fn sql(on: &Fixture, thread: ThreadId, statement: &str) {
    let url = on.url.as_deref().unwrap();
    let changed = if url.starts_with("sqlite:") {
        let statement = statement.replace("{thread}", &format!("x'{}'", thread.0.simple()));
        let options = sqlx::sqlite::SqliteConnectOptions::from_str(url).unwrap();
        let mut connection = options.connect().await.unwrap();
        let done = sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await;
        done.unwrap().rows_affected()
    } else {
        let statement = statement.replace("{thread}", &format!("'{thread}'"));
        let mut connection = stores::connect(url).await;
        let done = sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await;
        done.unwrap().rows_affected()
    };
    assert!(changed > 0, "the statement should change something: {statement}");
}

async fn four_steps(on: &Fixture, long: bool) -> (Runner<Story>, ThreadId) {
    let world = World::default();
    let first =
        if long { node_fn(|_| async { Ok(say("x".repeat(100_000))) }) } else { world.speaker("a") };
    let graph = graph(|graph| {
        graph
            .node("a", first)
            .node("b", world.speaker("b"))
            .node("c", world.speaker("c"))
            .entry("a")
            .edge("a", "b")
            .edge("b", "c")
    });
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    start(&runner, thread).await;
    (runner, thread)
}

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
async fn a_family_of_which_a_member_names_another_root_or_place_is_read_by_nobody(on: &Fixture) {
    let other = "UPDATE thread SET root_id = (SELECT t.id FROM thread t
        WHERE t.namespace = '' AND t.id <> thread.root_id ORDER BY t.id LIMIT 1) WHERE id = {thread}";
    let none = "UPDATE thread SET root_id = NULL WHERE id = {thread}";
    let place = "UPDATE thread SET namespace = 'a:3:0' WHERE id = {thread}";
    for damage in [other, none, place] {
        let (_, thread) = four_steps(on, false).await;
        four_steps(on, false).await;
        let child = below(on, thread, "a:2:0").await;
        let trace = || telemetry::read(on.store.as_ref(), thread, telemetry::Which::Newest);
        assert_eq!(on.store.export(thread).await.unwrap().children.len(), 1);
        assert_eq!(trace().await.unwrap().0.children.len(), 1);
        sql(on, child, damage).await;
        let export = on.store.export(thread).await.err();
        let trace = trace().await.err().and_then(|error| match error {
            telemetry::Error::Store(error) => Some(error),
            _ => None,
        });
        for refused in [export, trace] {
            assert!(
                matches!(&refused, Some(StoreError::Corrupt { thread: it, .. }) if *it == thread),
                "{damage}: {refused:?}"
            );
        }
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

/// Makes the thread of a subgraph at a place below a thread.
async fn below(on: &Fixture, parent: ThreadId, namespace: &str) -> ThreadId {
    let parent = on.store.info(parent).await.unwrap();
    let child = NewThread {
        id: parent.id.child(namespace),
        root: Some(parent.top()),
        graph: parent.graph,
        title: None,
        namespace: namespace.to_owned(),
        tenant: parent.tenant,
    };
    on.store.create(child).await.unwrap().id
}
