//! Threads that went back to an earlier step, once what lies between is dropped.

use std::sync::Arc;

use perihelion_engine::checkpoint::{
    Encoded, Error as StoreError, StepKind, chain_hash, fork_to, read_dump, write_dump,
};
use perihelion_engine::graph::Graph;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{Error, Runner, compact};

use super::world::*;
use crate::store_suite::{on_every_store_sealed_too, stores, stores::Fixture, writer::Writer};

on_every_store_sealed_too!(
    a_shortened_thread_that_went_back_reads_the_same_in_another_store,
    a_return_whose_snapshot_was_never_written_outlives_shortening,
    a_shortened_fork_of_a_thread_that_went_back_reads_the_same,
    a_process_that_read_a_thread_before_it_went_back_reads_it_once_it_is_shortened,
    no_thread_goes_back_to_a_step_that_was_dropped,
);

fn chain() -> Arc<Graph<Story>> {
    let world = World::default();
    graph(|graph| {
        graph
            .node("a", world.speaker("a"))
            .node("b", world.speaker("b"))
            .node("c", world.speaker("c"))
            .entry("a")
            .edge("a", "b")
            .edge("b", "c")
    })
}

/// Runs a thread to its end (step 4), takes it back to step 2 and runs it to its end again (step 7).
async fn went_back(runner: &Runner<Story>) -> ThreadId {
    let thread = World::default().thread(runner).await;
    start(runner, thread).await;
    assert_eq!(runner.go_back(thread, 2).await.unwrap().seq, 5);
    let outcome = resume(runner, thread).await;
    assert_eq!((outcome.head, lines(&outcome.state)), (7, vec!["input", "a", "b", "c"]));
    thread
}

/// What a reader sees of a thread from a step on: each state with what runs next, and the steps.
async fn reading(runner: &Runner<Story>, thread: ThreadId, from: u64) -> Vec<String> {
    let mut seen = Vec::new();
    for seq in from..=7 {
        let view = runner.state(thread, Some(seq)).await.unwrap();
        seen.push(format!("{seq}: {:?}", lines(&view.state)));
    }
    for row in runner.store().history(thread, None, 100).await.unwrap() {
        if row.seq > from {
            seen.push(format!("{} {:?} {:?} {}", row.seq, row.kind, row.hash, row.at));
        }
    }
    seen
}

/// X4
async fn a_shortened_thread_that_went_back_reads_the_same_in_another_store(on: &Fixture) {
    let graph = chain();
    let here = runner(&graph, &on.store);
    let thread = went_back(&here).await;
    let before = reading(&here, thread, 4).await;
    assert_eq!(compact::<Story>(on.store.as_ref(), thread, 3).await.unwrap(), Some(5));
    assert_eq!(reading(&here, thread, 4).await, before, "in place");
    let mut file = Vec::new();
    write_dump(&on.store.export(thread).await.unwrap(), &mut file).unwrap();
    on.store.delete(thread).await.unwrap();
    for next in [stores::sqlite().await, stores::memory().await, stores::postgres().await] {
        next.store.import(&read_dump(&file[..]).unwrap()).await.unwrap();
        let there = runner(&graph, &next.store);
        assert_eq!(reading(&there, thread, 4).await, before, "{}", next.store.describe());
        file.clear();
        write_dump(&next.store.export(thread).await.unwrap(), &mut file).unwrap();
        next.store.delete(thread).await.unwrap();
        next.store.close().await;
    }
    on.store.import(&read_dump(&file[..]).unwrap()).await.unwrap();
    assert_eq!(reading(&here, thread, 4).await, before, "back again");
    assert_eq!(here.go_back(thread, 5).await.unwrap().next, ["b"]);
    assert_eq!(lines(&resume(&here, thread).await.state), ["input", "a", "b", "c"]);
}

/// X1: as the end of a process leaves it between the two.
async fn a_return_whose_snapshot_was_never_written_outlives_shortening(on: &Fixture) {
    let runner = runner(&chain(), &on.store);
    let thread = World::default().thread(&runner).await;
    start(&runner, thread).await;
    let second = on.store.history(thread, Some(3), 1).await.unwrap().remove(0);
    let mut dead = Writer::claim(&on.store, thread).await;
    let delta = Encoded::json(&[fork_to::<Story>(2)], usize::MAX).unwrap();
    let mut commit = dead.next(delta);
    let json = commit.step.delta.to_json_bytes().unwrap();
    commit.step.kind = StepKind::Fork;
    commit.step.hash = chain_hash(&dead.hash, 5, &json, &second.frontier);
    commit.step.frontier = second.frontier;
    dead.commit(&commit).await.unwrap();
    assert_eq!(compact::<Story>(on.store.as_ref(), thread, 1).await.unwrap(), Some(5));
    let view = runner.state(thread, None).await.unwrap();
    assert_eq!((lines(&view.state), view.next), (vec!["input", "a"], vec!["b".to_owned()]));
}

async fn a_shortened_fork_of_a_thread_that_went_back_reads_the_same(on: &Fixture) {
    let runner = runner(&chain(), &on.store);
    let source = went_back(&runner).await;
    let fork = runner.fork(source, 6, None).await.unwrap().id;
    resume(&runner, fork).await;
    let before = reading(&runner, fork, 4).await;
    assert_eq!(compact::<Story>(on.store.as_ref(), fork, 3).await.unwrap(), Some(5));
    on.store.delete(source).await.unwrap();
    assert_eq!(reading(&runner, fork, 4).await, before);
}

async fn a_process_that_read_a_thread_before_it_went_back_reads_it_once_it_is_shortened(
    on: &Fixture,
) {
    let graph = chain();
    let here = runner(&graph, &on.store);
    let there = runner(&graph, &on.another().await);
    let thread = World::default().thread(&here).await;
    start(&here, thread).await;
    assert_eq!(lines(&there.state(thread, None).await.unwrap().state).len(), 4);
    here.go_back(thread, 2).await.unwrap();
    resume(&here, thread).await;
    // The step that it went back to is gone, the one that the other process knows is not.
    assert_eq!(compact::<Story>(on.store.as_ref(), thread, 4).await.unwrap(), Some(4));
    for _ in 0..2 {
        assert_eq!(reading(&there, thread, 4).await, reading(&here, thread, 4).await);
    }
}

async fn no_thread_goes_back_to_a_step_that_was_dropped(on: &Fixture) {
    let runner = runner(&chain(), &on.store);
    let thread = World::default().thread(&runner).await;
    start(&runner, thread).await;
    assert_eq!(compact::<Story>(on.store.as_ref(), thread, 2).await.unwrap(), Some(3));
    for to in [0, 1, 2, 5] {
        match runner.go_back(thread, to).await {
            Err(Error::Store(StoreError::UnknownStep { seq, head: 4, .. })) => assert_eq!(seq, to),
            other => panic!("{to}: {other:?}"),
        }
    }
    assert_eq!(on.store.info(thread).await.unwrap().head, 4);
    assert_eq!(runner.go_back(thread, 3).await.unwrap().next, ["c"]);
    assert_eq!(lines(&resume(&runner, thread).await.state), ["input", "a", "b", "c"]);
}
