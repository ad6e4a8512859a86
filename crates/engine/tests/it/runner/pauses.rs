//! Pauses before and after nodes: a run ends there as interrupted, asks nothing, and a resume continues it (S2.12).

use perihelion_engine::checkpoint::{RunStatus, ThreadStatus};
use perihelion_engine::graph::{Nodes, Pauses, Target};
use perihelion_engine::runner::{Durability, RunOptions};

use super::world::*;
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(
    a_run_pauses_before_a_node_and_a_resume_passes_it,
    a_run_pauses_after_a_node_unless_the_graph_has_ended,
    a_new_input_pauses_before_the_first_step_as_well,
    a_run_that_broke_off_before_its_pause_still_comes_to_it,
    a_run_that_is_stopped_in_the_step_before_its_pause_still_comes_to_it,
    any_node_of_a_parallel_step_pauses_it_and_every_durability_stores_finished_work,
);

fn nodes(names: &[&str]) -> Nodes {
    Nodes::from(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
}

fn pausing(before: &[&str], after: &[&str]) -> RunOptions<Story> {
    let pauses = Pauses { before: nodes(before), after: nodes(after), at_start: false };
    RunOptions { pauses, ..RunOptions::default() }
}

/// A graph of three steps, one after another.
fn in_a_row(world: &World) -> std::sync::Arc<perihelion_engine::graph::Graph<Story>> {
    graph(|graph| {
        let graph = graph.node("a", world.speaker("a")).node("b", world.speaker("b"));
        graph.node("c", world.speaker("c")).entry("a").edge("a", "b").edge("b", "c")
    })
}

/// S2.12
async fn a_run_pauses_before_a_node_and_a_resume_passes_it(on: &Fixture) {
    let world = World::default();
    let runner = runner(&in_a_row(&world), &on.store);
    let thread = world.thread(&runner).await;
    let paused = runner.start(thread, input(), pausing(&["b"], &[])).await.unwrap();
    assert!(interrupts(&paused).is_empty(), "it asks nothing");
    assert_eq!((lines(&paused.state), world.seen()), (vec!["input", "a"], vec!["a".to_owned()]));
    let view = runner.state(thread, None).await.unwrap();
    assert_eq!((view.next, view.info.status), (vec!["b".to_owned()], ThreadStatus::Interrupted));
    let runs = on.store.runs(thread).await.unwrap();
    assert_eq!(runs[0].status, RunStatus::Interrupted);
    // An edit between is what pauses are for.
    runner
        .update_state(thread, StoryUpdate::new().lines(vec!["edit".to_owned()]), "a")
        .await
        .unwrap();
    let done = runner.resume(thread, pausing(&["b"], &[])).await.unwrap();
    assert!(is_done(&done), "{done:?}");
    assert_eq!(lines(&done.state), ["input", "a", "edit", "b", "c"]);
}

async fn a_run_pauses_after_a_node_unless_the_graph_has_ended(on: &Fixture) {
    let world = World::default();
    let runner = runner(&in_a_row(&world), &on.store);
    let thread = world.thread(&runner).await;
    let all = || pausing(&[], &["*"]);
    let first = runner.start(thread, input(), all()).await.unwrap();
    assert_eq!((interrupts(&first).len(), lines(&first.state)), (0, vec!["input", "a"]));
    let second = runner.resume(thread, all()).await.unwrap();
    assert_eq!((interrupts(&second).len(), lines(&second.state)), (0, vec!["input", "a", "b"]));
    let third = runner.resume(thread, all()).await.unwrap();
    assert!(is_done(&third), "{third:?}");
    assert_eq!(world.seen(), ["a", "b", "c"]);
}

async fn a_new_input_pauses_before_the_first_step_as_well(on: &Fixture) {
    let world = World::default();
    let runner = runner(&in_a_row(&world), &on.store);
    let thread = world.thread(&runner).await;
    let before = || pausing(&["*"], &[]);
    let paused = runner.start(thread, input(), before()).await.unwrap();
    assert_eq!((interrupts(&paused).len(), paused.head), (0, 1));
    assert_eq!(world.seen(), Vec::<String>::new());
    let next = runner.resume(thread, before()).await.unwrap();
    assert_eq!((interrupts(&next).len(), lines(&next.state)), (0, vec!["input", "a"]));
    let mut at_start = before();
    at_start.pauses.at_start = true;
    let still = runner.resume(thread, at_start).await.unwrap();
    assert_eq!((interrupts(&still).len(), lines(&still.state)), (0, vec!["input", "a"]));
    assert!(is_done(&resume(&runner, thread).await));
}

async fn a_run_that_broke_off_before_its_pause_still_comes_to_it(on: &Fixture) {
    let world = World::default();
    let gate = Gate::closed();
    let gate_of_node = gate.clone();
    let waits = perihelion_engine::graph::node_fn(move |_| {
        let gate = gate_of_node.clone();
        async move {
            gate.pass().await;
            Ok(say("a"))
        }
    });
    let graph = graph(|graph| {
        graph.node("a", waits).node("b", world.speaker("b")).entry("a").edge("a", "b")
    });
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    crash_at(&gate, runner.start(thread, input(), pausing(&["b"], &[]))).await;
    gate.open();
    let paused = runner.resume(thread, pausing(&["b"], &[])).await.unwrap();
    assert_eq!((interrupts(&paused).len(), lines(&paused.state)), (0, vec!["input", "a"]));
    assert!(is_done(&resume(&runner, thread).await));
}

/// A process that takes it over would continue past the pause.
async fn a_run_that_is_stopped_in_the_step_before_its_pause_still_comes_to_it(on: &Fixture) {
    let world = World::default();
    for (before, after) in [(&["b"][..], &[][..]), (&[], &["a"])] {
        let options = RunOptions { hands_over: true, ..pausing(before, after) };
        let stop = options.cancel.clone();
        let stopping = perihelion_engine::graph::node_fn(move |_| {
            stop.cancel();
            async {
                // The run notices the stop before the end of the step.
                tokio::task::yield_now().await;
                Ok(say("a"))
            }
        });
        let graph = graph(|graph| {
            graph.node("a", stopping).node("b", world.speaker("b")).entry("a").edge("a", "b")
        });
        let runner = runner(&graph, &on.store);
        let thread = world.thread(&runner).await;
        let paused = runner.start(thread, input(), options).await.unwrap();
        assert_eq!((interrupts(&paused).len(), lines(&paused.state)), (0, vec!["input", "a"]));
        let info = on.store.info(thread).await.unwrap();
        assert_eq!(info.status, ThreadStatus::Interrupted);
    }
    assert!(world.seen().is_empty());
}

async fn any_node_of_a_parallel_step_pauses_it_and_every_durability_stores_finished_work(
    on: &Fixture,
) {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let world = World::default();
        let graph = graph(|graph| {
            let graph = graph.node("a", world.speaker("a")).node("b", world.speaker("b"));
            let graph = graph.node("c", world.speaker("c")).entry("a");
            graph.route("a", |_: &Story| vec![Target::node("b"), Target::node("c")])
        });
        let runner = runner(&graph, &on.store);
        let thread = world.thread(&runner).await;
        let options = || RunOptions { durability, ..pausing(&["c"], &["b"]) };
        let paused = runner.start(thread, input(), options()).await.unwrap();
        assert_eq!((interrupts(&paused).len(), world.seen()), (0, vec!["a".to_owned()]));
        let stored = runner.state(thread, None).await.unwrap();
        assert_eq!((stored.seq, lines(&stored.state)), (paused.head, vec!["input", "a"]));
        let done = runner.resume(thread, options()).await.unwrap();
        assert!(is_done(&done), "the graph has ended after b: {done:?}");
        assert_eq!(lines(&done.state), ["input", "a", "b", "c"]);
    }
}
