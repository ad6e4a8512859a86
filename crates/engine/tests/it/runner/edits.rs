//! Time travel: reading any step, forking from it, editing the state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use perihelion_engine::checkpoint::{Error as StoreError, StepKind, ThreadStatus};
use perihelion_engine::graph::{END, EngineError, State, Target, node_fn};
use perihelion_engine::runner::{AfterEdit, Error, RunOptions};

use super::world::*;
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(
    the_state_at_any_step_is_the_fold_of_all_steps,
    a_fork_runs_on_from_its_step_and_leaves_its_source_alone,
    an_edit_is_a_step_after_which_the_named_node_leads_on,
    an_edit_leaves_the_next_nodes_unchanged_on_request,
    an_edit_can_end_a_thread_or_begin_it_again,
    an_edit_on_behalf_of_an_unknown_node_is_refused_without_a_change,
    an_edit_drops_what_its_abandoned_step_already_had,
    an_edit_that_cannot_be_merged_after_its_claim_leaves_the_thread_at_rest,
    a_thread_of_another_graph_is_refused,
);

fn chain(world: &World) -> std::sync::Arc<perihelion_engine::graph::Graph<Story>> {
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

/// X3
async fn the_state_at_any_step_is_the_fold_of_all_steps(on: &Fixture) {
    let world = World::default();
    let runner = runner(&chain(&world), &on.store);
    let thread = world.thread(&runner).await;
    start(&runner, thread).await;
    let mut rows = on.store.history(thread, None, 10).await.unwrap();
    rows.reverse();
    let mut folded = Story::default();
    for (seq, next) in [(0, None), (1, Some("a")), (2, Some("b")), (3, Some("c")), (4, None)] {
        if seq > 0 {
            let delta = rows[seq as usize - 1].delta.clone();
            for written in delta.decode::<Vec<perihelion_engine::graph::Written<Story>>>().unwrap()
            {
                folded.apply(written.update);
            }
        }
        let view = runner.state(thread, Some(seq)).await.unwrap();
        assert_eq!((lines(&view.state), view.seq), (lines(&folded), seq));
        assert_eq!(view.next, Vec::from_iter(next.map(str::to_owned)));
    }
    let beyond = runner.state(thread, Some(9)).await;
    assert!(matches!(beyond, Err(Error::Store(StoreError::UnknownStep { seq: 9, head: 4, .. }))));
}

async fn a_fork_runs_on_from_its_step_and_leaves_its_source_alone(on: &Fixture) {
    let world = World::default();
    let runner = runner(&chain(&world), &on.store);
    let thread = world.thread(&runner).await;
    start(&runner, thread).await;
    let fork = runner.fork(thread, 2, Some("other end".into())).await.unwrap();
    assert_eq!((fork.head, fork.forked_from), (2, Some((thread, 2))));
    let refused = runner.start(fork.id, input(), RunOptions::default()).await;
    assert!(matches!(refused, Err(Error::Unfinished { .. })), "{refused:?}");
    let outcome = resume(&runner, fork.id).await;
    assert_eq!((lines(&outcome.state), outcome.head), (vec!["input", "a", "b", "c"], 4));
    assert_eq!(world.seen(), ["a", "b", "c", "b", "c"]);
    assert_eq!(on.own_steps(fork.id).await.unwrap_or(2), 2, "shared steps are not copied");
    let more = start(&runner, fork.id).await;
    assert_eq!(more.head, 8);
    assert_eq!(runner.state(thread, None).await.unwrap().seq, 4);
}

async fn an_edit_is_a_step_after_which_the_named_node_leads_on(on: &Fixture) {
    let world = World::default();
    let runner = runner(&chain(&world), &on.store);
    let thread = world.thread(&runner).await;
    start(&runner, thread).await;
    let update = StoryUpdate::new().lines(vec!["edited".into()]);
    let view = runner.update_state(thread, update, "b").await.unwrap();
    assert_eq!(
        (view.seq, &view.next[..], view.info.status),
        (5, &["c".to_owned()][..], ThreadStatus::Failed)
    );
    let row = on.store.history(thread, None, 1).await.unwrap().pop().unwrap();
    assert_eq!(row.kind, StepKind::Edit);
    let outcome = resume(&runner, thread).await;
    assert_eq!(lines(&outcome.state), ["input", "a", "b", "c", "edited", "c"]);
}

/// X5: what is next stays what it is, whatever the node leads to that is named as the writer.
async fn an_edit_leaves_the_next_nodes_unchanged_on_request(on: &Fixture) {
    let world = World::default();
    let runner = runner(&chain(&world), &on.store);
    let thread = world.thread(&runner).await;
    start(&runner, thread).await;
    let fork = runner.fork(thread, 2, None).await.unwrap().id;
    let update = StoryUpdate::new().lines(vec!["edited".into()]);
    let unchanged = AfterEdit::Unchanged;
    let view = runner.update_state_and_go(fork, None, update, "c", unchanged).await.unwrap();
    assert_eq!((view.seq, &view.next[..]), (3, &["b".to_owned()][..]));
    assert_eq!(view.info.status, ThreadStatus::Interrupted);
    let outcome = resume(&runner, fork).await;
    assert_eq!(lines(&outcome.state), ["input", "a", "edited", "b", "c"]);
}

async fn an_edit_can_end_a_thread_or_begin_it_again(on: &Fixture) {
    let world = World::default();
    let fails =
        node_fn(|_| async { Err(perihelion_engine::graph::NodeError::failed("x", "always")) });
    let graph = graph(|graph| graph.node("a", fails).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    start(&runner, thread).await;
    let update = || StoryUpdate::new().lines(vec!["enough".into()]);
    let view = runner.update_state(thread, update(), END).await.unwrap();
    assert_eq!((view.info.status, view.next.len()), (ThreadStatus::Idle, 0));
    let view = runner.update_state(thread, update(), "__input__").await.unwrap();
    assert_eq!(view.next, ["a"]);
    assert_eq!(lines(&view.state), ["input", "enough", "enough"]);
}

async fn an_edit_on_behalf_of_an_unknown_node_is_refused_without_a_change(on: &Fixture) {
    let world = World::default();
    let runner = runner(&chain(&world), &on.store);
    let thread = world.thread(&runner).await;
    start(&runner, thread).await;
    let before = on.store.info(thread).await.unwrap();
    let refused = runner.update_state(thread, StoryUpdate::new(), "nobody").await.unwrap_err();
    assert_eq!(refused.to_string(), "the graph story has no node of that name: nobody");
    assert_eq!(on.store.info(thread).await.unwrap(), before);
}

async fn an_edit_drops_what_its_abandoned_step_already_had(on: &Fixture) {
    let world = World::default();
    let fails =
        node_fn(|_| async { Err(perihelion_engine::graph::NodeError::failed("x", "always")) });
    let graph = graph(|graph| {
        graph
            .node("fast", world.speaker("fast"))
            .node("fails", fails)
            .node("other", world.speaker("other"))
            .entry("fast")
            .entry("fails")
            .edge("fast", "other")
    });
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    start(&runner, thread).await;
    assert_eq!(on.store.load(thread, None).await.unwrap().pending.len(), 1);
    runner.update_state(thread, StoryUpdate::new(), "fast").await.unwrap();
    assert!(on.store.load(thread, None).await.unwrap().pending.is_empty());
    assert_eq!(lines(&resume(&runner, thread).await.state), ["input", "other"]);
}

/// The thread may move between the trial of an edit and its claim.
async fn an_edit_that_cannot_be_merged_after_its_claim_leaves_the_thread_at_rest(on: &Fixture) {
    let world = World::default();
    let left = Arc::new(AtomicU32::new(u32::MAX));
    let routes = Arc::clone(&left);
    let graph = graph(|graph| {
        graph.node("a", world.speaker("a")).entry("a").route("a", move |_: &Story| {
            let is_led_astray = routes.fetch_sub(1, Ordering::Relaxed) == 0;
            is_led_astray.then(|| Target::node("nowhere")).into_iter().collect()
        })
    });
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    start(&runner, thread).await;
    left.store(1, Ordering::Relaxed);
    let refused = runner.update_state(thread, StoryUpdate::new(), "a").await;
    assert!(matches!(refused, Err(Error::Update(EngineError::UnknownTarget { .. }))));
    let info = on.store.info(thread).await.unwrap();
    assert_eq!((info.status, info.owner, info.head), (ThreadStatus::Idle, None, 2));
    assert_eq!(start(&runner, thread).await.head, 4, "it takes the next input");
}

async fn a_thread_of_another_graph_is_refused(on: &Fixture) {
    let world = World::default();
    let here = runner(&chain(&world), &on.store);
    let other = perihelion_engine::graph::GraphBuilder::new("other")
        .node("a", world.speaker("a"))
        .entry("a")
        .build()
        .unwrap();
    let other = runner(&other, &on.store);
    let thread = world.thread(&here).await;
    for refused in [
        other.start(thread, input(), RunOptions::default()).await.err(),
        other.resume(thread, RunOptions::default()).await.err(),
        other.update_state(thread, StoryUpdate::new(), "a").await.err(),
        other.fork(thread, 0, None).await.err(),
    ] {
        assert!(matches!(refused, Some(Error::WrongGraph { .. })), "{refused:?}");
    }
    assert!(world.seen().is_empty());
}
