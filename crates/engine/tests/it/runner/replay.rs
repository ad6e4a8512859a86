//! A recorded thread runs again offline, from its journal (X3).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use perihelion_engine::graph::{Context, Graph, GraphBuilder, Node, Outcome, node_fn};
use perihelion_engine::runner::{Runner, Subgraph};
use serde_json::json;

use super::world::*;
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(
    a_recorded_run_replays_to_the_same_bytes_without_touching_anything,
    a_changed_node_is_the_first_divergence,
    a_call_the_recorded_run_did_not_make_is_a_divergence,
    a_fork_replays_its_shared_steps_too,
);

/// A thread with everything in it: model, tool, clock, chance, a question, fan-out, a subgraph.
fn rich(on: &Fixture, world: &World, changed: &Arc<AtomicBool>) -> Arc<Graph<Story>> {
    let counted = world.clone();
    let thinks = node_fn(move |ctx: Context<Story>| {
        let world = counted.clone();
        async move {
            let Outcome::Value(plan) = world.ask_model(&ctx, "plan").await? else { panic!() };
            let drawn = (ctx.now().await?, ctx.random().await?);
            let answer = ctx.interrupt("clarification", "go?").await?;
            world.call_tool(&ctx, false, || Ok(json!("written"))).await?;
            Ok(say(format!("{plan} {drawn:?} {answer}")))
        }
    });
    let changed = Arc::clone(changed);
    let ends = node_fn(move |ctx: Context<Story>| {
        let changed = changed.load(Ordering::Relaxed);
        async move { Ok(say(format!("{} {changed}", ctx.state().lines.len()))) }
    });
    let child =
        GraphBuilder::new("child").node("inner", world.speaker("inner")).entry("inner").build();
    let team: Arc<dyn Node<Story>> = Arc::new(Subgraph::<Story, Story>::new(
        Runner::new(child.unwrap(), on.store.clone()),
        |_| Ok(input()),
        |_, child| Ok(say(child.last.clone())),
    ));
    graph(|graph| {
        graph
            .node("thinks", thinks)
            .node("beside", world.speaker("beside"))
            .node("team", team)
            .node("ends", ends)
            .entry("thinks")
            .entry("beside")
            .edge("thinks", "team")
            .edge("team", "ends")
    })
}

async fn recorded(
    on: &Fixture,
) -> (Runner<Story>, perihelion_engine::ids::ThreadId, World, Arc<AtomicBool>) {
    let world = World::default();
    let changed = Arc::new(AtomicBool::new(false));
    let runner = runner(&rich(on, &world, &changed), &on.store);
    let thread = world.thread(&runner).await;
    let outcome = start(&runner, thread).await;
    runner.answer(thread, interrupts(&outcome)[0].id, &json!("go")).await.unwrap();
    assert!(is_done(&resume(&runner, thread).await));
    (runner, thread, world, changed)
}

/// X3
async fn a_recorded_run_replays_to_the_same_bytes_without_touching_anything(on: &Fixture) {
    let (runner, thread, world, _) = recorded(on).await;
    runner.update_state(thread, StoryUpdate::new().last("edited".into()), "team").await.unwrap();
    resume(&runner, thread).await;
    let calls = |world: &World| world.seen().iter().filter(|it| it.contains("call")).count();
    let before =
        (on.store.info(thread).await.unwrap(), on.store.effects(thread, None).await.unwrap());
    let models = world.count("plan");
    let tools = calls(&world);
    let inner = world.count("inner");
    let report = runner.replay(thread, None).await.unwrap();
    assert_eq!(report.divergence, None);
    assert_eq!((report.from, report.replayed, report.taken), (1, 4, 2));
    assert_eq!((world.count("plan"), calls(&world), world.count("inner")), (models, tools, inner));
    let after =
        (on.store.info(thread).await.unwrap(), on.store.effects(thread, None).await.unwrap());
    assert_eq!(before, after);
}

async fn a_changed_node_is_the_first_divergence(on: &Fixture) {
    let (runner, thread, _, changed) = recorded(on).await;
    changed.store(true, Ordering::Relaxed);
    let report = runner.replay(thread, None).await.unwrap();
    let divergence = report.divergence.unwrap();
    assert_eq!((divergence.step, &*divergence.node, report.replayed), (4, "ends", 2));
    assert_eq!(divergence.expected["last"], "4 false");
    assert_eq!(divergence.actual["last"], "4 true");
}

async fn a_call_the_recorded_run_did_not_make_is_a_divergence(on: &Fixture) {
    let world = World::default();
    let plain = graph(|graph| graph.node("a", world.speaker("a")).entry("a"));
    let here = runner(&plain, &on.store);
    let thread = world.thread(&here).await;
    start(&here, thread).await;
    let counted = world.clone();
    let calls = node_fn(move |ctx: Context<Story>| {
        let world = counted.clone();
        async move {
            world.ask_model(&ctx, "plan").await?;
            Ok(say("a"))
        }
    });
    let other = runner(&graph(|graph| graph.node("a", calls).entry("a")), &on.store);
    let divergence = other.replay(thread, None).await.unwrap().divergence.unwrap();
    assert_eq!((divergence.step, &*divergence.node), (2, "a"));
    assert_eq!(divergence.reason, "it asked for model, which the recorded run did not");
    assert_eq!(divergence.expected["last"], "a");
    assert_eq!(world.count("plan"), 0);
}

async fn a_fork_replays_its_shared_steps_too(on: &Fixture) {
    let (runner, thread, _, _) = recorded(on).await;
    let fork = runner.fork(thread, 3, None).await.unwrap();
    assert!(is_done(&resume(&runner, fork.id).await));
    let report = runner.replay(fork.id, None).await.unwrap();
    assert_eq!((report.divergence, report.replayed), (None, 3));
}
