//! What a node observes: durable with the next thing that depends on it, and at the latest when the node ends (X2).

use std::sync::Arc;

use perihelion_engine::checkpoint::Store;
use perihelion_engine::graph::{Context, EffectClass, EffectRequest, Outcome, node_fn};
use perihelion_engine::ids::ThreadId;
use serde_json::json;

use super::world::*;
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(
    notes_are_written_with_the_next_effect_or_at_the_end,
    a_subgraph_finds_notes_kept,
    any_number_of_notes_is_written
);

/// Returns the kinds of what is recorded of a thread, in order.
async fn kinds(store: &Arc<dyn Store>, thread: ThreadId) -> Vec<&'static str> {
    let rows = store.effects(thread, None).await.unwrap();
    rows.iter().map(|row| row.kind.as_str()).collect()
}

async fn notes_are_written_with_the_next_effect_or_at_the_end(on: &Fixture) {
    let world = World::default();
    let node = {
        let store = Arc::clone(&on.store);
        node_fn(move |ctx: Context<Story>| {
            let store = Arc::clone(&store);
            async move {
                let thread = ctx.place().thread;
                let is_replay = ctx.port().is_replay();
                let is_kept = async |count, why| {
                    let kept = kinds(&store, thread).await.len();
                    assert!(is_replay || kept == count, "{why}: {kept}");
                };
                ctx.note_time().await?;
                ctx.observe("menu", &1).await?;
                is_kept(0, "nothing depends on them yet").await;
                let request = EffectRequest {
                    class: EffectClass::Action { repeatable: false },
                    name: "files.write".to_owned(),
                    request: json!({}),
                };
                let seen = Arc::clone(&store);
                let send = move |_| {
                    let seen = Arc::clone(&seen);
                    let sent = async move { Ok(json!(kinds(&seen, thread).await)) };
                    Box::pin(sent) as futures::future::BoxFuture<'static, _>
                };
                let Outcome::Value(when_sent) = ctx.effect(request, Box::new(send)).await? else {
                    panic!("it was sent");
                };
                ctx.observe("team", &2).await?;
                is_kept(3, "noted").await;
                ctx.keep_notes().await?;
                is_kept(4, "passed on").await;
                ctx.random().await?;
                is_kept(5, "drawn").await;
                ctx.note_time().await?;
                Ok(say(when_sent.to_string()))
            }
        })
    };
    let graph = graph(|graph| graph.node("a", node).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let outcome = start(&runner, thread).await;
    assert_eq!(outcome.state.last, r#"["clock","observed","tool"]"#);
    let all = ["clock", "observed", "tool", "observed", "random", "clock"];
    assert_eq!(kinds(&on.store, thread).await, all);
    let replayed = runner.replay(thread, None).await.unwrap();
    assert!(replayed.divergence.is_none(), "{:?}", replayed.divergence);
}

async fn a_subgraph_finds_notes_kept(on: &Fixture) {
    let world = World::default();
    let parent = Arc::new(std::sync::OnceLock::<ThreadId>::new());
    let looks = {
        let store = Arc::clone(&on.store);
        let parent = Arc::clone(&parent);
        node_fn(move |_: Context<Story>| {
            let store = Arc::clone(&store);
            let parent = Arc::clone(&parent);
            async move { Ok(say(kinds(&store, *parent.get().unwrap()).await.join(" "))) }
        })
    };
    let child =
        perihelion_engine::graph::GraphBuilder::new("inner").node("looks", looks).entry("looks");
    let inner =
        perihelion_engine::runner::Runner::new(child.build().unwrap(), Arc::clone(&on.store));
    let team = Arc::new(perihelion_engine::runner::Subgraph::<Story, Story>::new(
        inner,
        |_| Ok(StoryUpdate::new()),
        |_, child| Ok(say(child.last.clone())),
    ));
    let node = node_fn(move |ctx: Context<Story>| {
        let team = Arc::clone(&team);
        async move {
            ctx.note_time().await?;
            let child = team.run_to_end(&ctx).await?;
            Ok(say(child.last.clone()))
        }
    });
    let graph = graph(|graph| graph.node("a", node).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    parent.set(thread).unwrap();
    let outcome = start(&runner, thread).await;
    assert_eq!(
        outcome.state.last, "clock",
        "the subgraph is begun after what its parent drew is kept"
    );
}

/// The databases take only some thousands of values in one statement.
async fn any_number_of_notes_is_written(on: &Fixture) {
    const NOTES: usize = 4_200;
    let world = World::default();
    let node = node_fn(|ctx: Context<Story>| async move {
        for _ in 0..NOTES {
            ctx.note_time().await?;
        }
        Ok(say("noted"))
    });
    let graph = graph(|graph| graph.node("a", node).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let outcome = start(&runner, thread).await;
    assert_eq!(outcome.state.last, "noted");
    assert_eq!(kinds(&on.store, thread).await.len(), NOTES);
}
