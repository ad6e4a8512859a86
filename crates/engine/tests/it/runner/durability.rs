//! The three durabilities: what a crash loses, and what it never does.

use perihelion_engine::graph::{Context, NodeEntry, Outcome, node_fn};
use perihelion_engine::runner::{Durability, INPUT, RunOptions};

use super::world::*;
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(
    every_mode_ends_with_the_same_history,
    exit_loses_steps_in_a_crash_but_not_the_input_or_a_call,
    an_edit_after_lost_steps_uses_none_of_their_answers,
    async_loses_no_call_and_keeps_what_parallel_tasks_wrote,
    a_long_exit_run_has_its_snapshot_too,
);

fn options(durability: Durability) -> RunOptions<Story> {
    RunOptions { durability, ..RunOptions::default() }
}

async fn every_mode_ends_with_the_same_history(on: &Fixture) {
    let mut hashes = Vec::new();
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let world = World::default();
        let graph = graph(|graph| {
            graph
                .node("a", world.speaker("a"))
                .node("b", world.speaker("b"))
                .node("c", world.speaker("c"))
                .entry("a")
                .edge("a", "b")
                .edge("a", "c")
                .edge("b", "c")
        });
        let runner = runner(&graph, &on.store);
        let thread = world.thread(&runner).await;
        let outcome = runner.start(thread, input(), options(durability)).await.unwrap();
        assert_eq!(lines(&outcome.state), ["input", "a", "b", "c", "c"]);
        let rows = on.store.history(thread, None, 100).await.unwrap();
        assert_eq!(rows.len() as u64, outcome.head);
        hashes.push(rows.iter().map(|row| row.hash).collect::<Vec<_>>());
    }
    assert!(hashes.iter().all(|own| *own == hashes[0]));
}

/// A graph of three steps; the first two ask a model something, the last one waits at the gate.
fn asking(
    world: &World,
    gate: &Gate,
    asked: [&'static str; 2],
) -> std::sync::Arc<perihelion_engine::graph::Graph<Story>> {
    let ask = |name: &'static str| {
        let world = world.clone();
        node_fn(move |ctx: Context<Story>| {
            let world = world.clone();
            async move {
                match world.ask_model(&ctx, name).await? {
                    Outcome::Value(value) => Ok(say(value.as_str().unwrap())),
                    Outcome::Failed(error) => panic!("{error}"),
                }
            }
        })
    };
    let last = {
        let world = world.clone();
        let gate = gate.clone();
        node_fn(move |ctx: Context<Story>| {
            let world = world.clone();
            let gate = gate.clone();
            async move {
                world.call_tool(&ctx, false, || Ok("written".into())).await?;
                gate.pass().await;
                Ok(say("last"))
            }
        })
    };
    graph(|graph| {
        graph
            .node("one", ask(asked[0]))
            .node("two", ask(asked[1]))
            .entry_node("last", NodeEntry::new(last))
            .entry("one")
            .edge("one", "two")
            .edge("two", "last")
    })
}

async fn exit_loses_steps_in_a_crash_but_not_the_input_or_a_call(on: &Fixture) {
    for durability in [Durability::Exit, Durability::Async, Durability::Sync] {
        let world = World::default();
        let gate = Gate::closed();
        let runner = runner(&asking(&world, &gate, ["one", "two"]), &on.store);
        let thread = world.thread(&runner).await;
        crash_at(&gate, runner.start(thread, input(), options(durability))).await;
        if durability == Durability::Exit {
            assert_eq!(on.store.info(thread).await.unwrap().head, 1, "the input alone");
        }
        gate.open();
        let outcome = runner.resume(thread, options(durability)).await.unwrap();
        assert_eq!(lines(&outcome.state), ["input", "one #0", "two #0", "last"]);
        assert_eq!((world.count("one"), world.count("two"), world.seen().len()), (1, 1, 3));
    }
}

async fn an_edit_after_lost_steps_uses_none_of_their_answers(on: &Fixture) {
    let world = World::default();
    let gate = Gate::closed();
    let runner = runner(&asking(&world, &gate, ["what", "what"]), &on.store);
    let thread = world.thread(&runner).await;
    crash_at(&gate, runner.start(thread, input(), options(Durability::Exit))).await;
    gate.open();
    let edit = StoryUpdate::new().lines(vec!["edited".to_owned()]);
    let edited = runner.update_state(thread, edit, INPUT).await.unwrap();
    assert_eq!((edited.seq, edited.next), (4, vec!["one".to_owned()]));
    let rows = on.store.history(thread, None, 4).await.unwrap();
    let fillers = rows.iter().filter(|row| row.is_filler()).map(|row| row.seq);
    assert!(fillers.eq([3, 2]), "{rows:?}");
    let outcome = resume(&runner, thread).await;
    assert_eq!(lines(&outcome.state), ["input", "edited", "what #2", "what #3", "last"]);
}

async fn async_loses_no_call_and_keeps_what_parallel_tasks_wrote(on: &Fixture) {
    let world = World::default();
    let gate = Gate::closed();
    let slow = {
        let gate = gate.clone();
        node_fn(move |_| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                Ok(say("slow"))
            }
        })
    };
    let graph = graph(|graph| {
        graph
            .node("first", world.speaker("first"))
            .node("fast", world.speaker("fast"))
            .node("slow", slow)
            .entry("first")
            .edge("first", "slow")
            .edge("first", "fast")
    });
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    tokio::select! {
        _ = runner.start(thread, input(), options(Durability::Async)) => panic!(),
        () = async {
            while on.store.load(thread, None).await.unwrap().pending.is_empty() {
                tokio::task::yield_now().await;
            }
        } => {}
    }
    gate.open();
    let outcome = resume(&runner, thread).await;
    assert_eq!(lines(&outcome.state), ["input", "first", "slow", "fast"]);
    assert_eq!((world.count("first"), world.count("fast")), (1, 1));
}

async fn a_long_exit_run_has_its_snapshot_too(on: &Fixture) {
    let world = World::default();
    let bytes = on.store.snapshot_above() + 1;
    let long = node_fn(move |_| async move { Ok(say("x".repeat(bytes))) });
    let graph = graph(|graph| {
        graph.node("a", long).node("b", world.speaker("b")).entry("a").edge("a", "b")
    });
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let outcome = runner.start(thread, input(), options(Durability::Exit)).await.unwrap();
    let loaded = on.store.load(thread, None).await.unwrap();
    assert_eq!(loaded.snapshot.map(|snapshot| snapshot.seq), Some(outcome.head));
    assert_eq!(lines(&runner.state(thread, None).await.unwrap().state).len(), 3);
}
