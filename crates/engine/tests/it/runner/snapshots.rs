//! A long thread opens from a snapshot and few steps (X1).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use perihelion_engine::checkpoint::{Error as StoreError, PostgresStore, Store};
use perihelion_engine::graph::{Context, NodeOutput, Target, node_fn};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{Error, RunOptions, compact};

use super::world::*;
use crate::store_suite::{on_every_store, stores, stores::Fixture};
use perihelion_test_database::proxy::{self, Piece, Way};

on_every_store!(
    a_long_thread_is_opened_from_a_snapshot_and_few_steps,
    a_state_that_only_overwrites_is_snapshotted_by_its_real_size,
    a_shortened_thread_runs_on_and_its_newest_step_is_never_dropped,
    a_step_of_an_old_thread_writes_as_much_as_a_step_of_a_young_thread,
);

/// Runs a node over and over, each time with an update of a sixteenth of what makes a snapshot pay.
async fn long_thread(
    on: &Fixture,
    steps: usize,
    append: bool,
) -> (perihelion_engine::runner::Runner<Story>, perihelion_engine::ids::ThreadId) {
    let bytes = on.store.snapshot_above() / 16;
    let node = node_fn(move |ctx: Context<Story>| async move {
        let step = ctx.place().step;
        let text = format!("{step} {}", "x".repeat(bytes));
        let update = if append {
            StoryUpdate::new().lines(vec![text])
        } else {
            StoryUpdate::new().last(text)
        };
        let more = (step as usize) <= steps;
        Ok(NodeOutput::goto(update, more.then(|| Target::node("a"))))
    });
    let graph = graph(|graph| graph.node("a", node).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = World::default().thread(&runner).await;
    runner.start(thread, input(), RunOptions::default()).await.unwrap();
    (runner, thread)
}

/// X1: what is read to open a thread is at most about twice its state.
async fn a_long_thread_is_opened_from_a_snapshot_and_few_steps(on: &Fixture) {
    let (runner, thread) = long_thread(on, 48, true).await;
    let loaded = on.store.load(thread, None).await.unwrap();
    let snapshot = loaded.snapshot.unwrap();
    let state = snapshot.state.to_json_bytes().unwrap().len();
    let deltas: usize =
        loaded.steps.iter().map(|row| row.delta.to_json_bytes().unwrap().len()).sum();
    assert!(
        deltas <= state + on.store.snapshot_above(),
        "{deltas} bytes of deltas after {state} of snapshot"
    );
    let view = runner.state(thread, None).await.unwrap();
    assert_eq!(view.state.lines.len(), 49);
    let early = runner.state(thread, Some(5)).await.unwrap();
    assert_eq!(early.state.lines.len(), 5);
}

/// Steps of a thread that grew old.
const OLD: usize = 2_000;

/// Runs a node over and over that appends as much each time; `at` is called when each step begins.
async fn appending_thread(
    store: &Arc<dyn Store>,
    at: impl Fn(u64) + Clone + Send + Sync + 'static,
) -> ThreadId {
    let node = node_fn(move |ctx: Context<Story>| {
        let at = at.clone();
        async move {
            let step = ctx.place().step;
            at(step);
            let update = StoryUpdate::new().lines(vec![format!("{step:08}")]);
            Ok(NodeOutput::goto(update, (step as usize <= OLD + 20).then(|| Target::node("a"))))
        }
    });
    let graph = graph(|graph| graph.node("a", node).entry("a"));
    let runner = runner(&graph, store);
    let thread = World::default().thread(&runner).await;
    let outcome = start(&runner, thread).await;
    assert!(is_done(&outcome), "{:?}", outcome.result);
    thread
}

/// X1: a step's row holds what it wrote, however long the thread is.
async fn a_step_of_an_old_thread_writes_as_much_as_a_step_of_a_young_thread(on: &Fixture) {
    let thread = appending_thread(&on.store, |_| {}).await;
    let mut rows = on.store.history(thread, None, u32::MAX).await.unwrap();
    rows.reverse();
    let bytes = |from: usize| -> Vec<usize> {
        let ten = &rows[from..from + 10];
        ten.iter().map(|row| row.delta.bytes.len() + row.frontier.len()).collect()
    };
    assert_eq!(bytes(OLD), bytes(10));
}

/// X1: and Postgres is asked as often for it.
#[tokio::test]
async fn a_step_of_an_old_thread_needs_as_many_statements_as_a_step_of_a_young_thread() {
    let on = stores::postgres().await;
    let statements = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&statements);
    let count = move |piece: Piece| {
        seen.fetch_add(usize::from(piece.way == Way::Statement), Ordering::SeqCst);
        false
    };
    let url = proxy::before(on.url.as_deref().unwrap(), count).await;
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&url).await.unwrap());
    // How many there were when each step began.
    let begun: Arc<Mutex<Vec<usize>>> = Arc::default();
    let begins = Arc::clone(&begun);
    appending_thread(&store, move |_| {
        begins.lock().unwrap().push(statements.load(Ordering::SeqCst));
    })
    .await;
    let begun = begun.lock().unwrap();
    // A lease is renewed, and a snapshot written, beside some step or other: the one in the middle has neither.
    let of_a_step = |from: usize| {
        let mut each: Vec<usize> =
            begun[from..from + 11].windows(2).map(|two| two[1] - two[0]).collect();
        each.sort_unstable();
        each[5]
    };
    assert_eq!((of_a_step(10), of_a_step(OLD)), (1, 1));
}

async fn a_state_that_only_overwrites_is_snapshotted_by_its_real_size(on: &Fixture) {
    let (runner, thread) = long_thread(on, 64, false).await;
    let loaded = on.store.load(thread, None).await.unwrap();
    let deltas: usize =
        loaded.steps.iter().map(|row| row.delta.to_json_bytes().unwrap().len()).sum();
    let enough = on.store.snapshot_above();
    assert!(deltas < enough, "{deltas} bytes of deltas where a snapshot pays from {enough} on");
    assert!(runner.state(thread, None).await.unwrap().state.last.starts_with("65 "));
}

async fn a_shortened_thread_runs_on_and_its_newest_step_is_never_dropped(on: &Fixture) {
    let world = World::default();
    let asks = node_fn(|ctx: Context<Story>| async move {
        ctx.interrupt("clarification", "go?").await?;
        Ok(say("asked"))
    });
    let graph = graph(|graph| {
        graph
            .node("a", world.speaker("a"))
            .node("b", world.speaker("b"))
            .node("asks", asks)
            .entry("a")
            .edge("a", "b")
            .edge("b", "asks")
    });
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let outcome = start(&runner, thread).await;
    let kept = compact::<Story>(on.store.as_ref(), thread, 0).await.unwrap();
    assert_eq!(kept, Some(3), "of three steps the newest says what runs next");
    for keep in [0, 1, 2] {
        let again = compact::<Story>(on.store.as_ref(), thread, keep).await.unwrap();
        assert_eq!(again, None, "nothing is left to drop, whatever an earlier call kept");
    }
    assert_eq!(lines(&runner.state(thread, Some(2)).await.unwrap().state), ["input", "a"]);
    let refused = runner.fork(thread, 2, None).await;
    assert!(
        matches!(refused, Err(Error::Store(StoreError::UnknownStep { seq: 2, .. }))),
        "{refused:?}"
    );
    runner.answer(thread, interrupts(&outcome)[0].id, &serde_json::json!("go")).await.unwrap();
    assert_eq!(lines(&resume(&runner, thread).await.state), ["input", "a", "b", "asked"]);
    let fork = runner.fork(thread, 3, None).await.unwrap();
    assert_eq!(interrupts(&resume(&runner, fork.id).await).len(), 1, "it asks in its own name");
    let report = runner.replay(thread, None).await.unwrap();
    assert_eq!((report.from, report.replayed, report.divergence), (4, 1, None));
}
