//! One stream of events; the stream modes are filters on it.

use perihelion_engine::graph::{Context, RunEvent, StreamMode, Wants, node_fn};
use perihelion_engine::runner::RunOptions;
use serde_json::json;
use tokio::sync::mpsc;

use super::world::*;
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(each_mode_shows_its_events_in_order, a_listener_that_left_does_not_stop_the_run,);

async fn each_mode_shows_its_events_in_order(on: &Fixture) {
    let world = World::default();
    let speaks = node_fn(|ctx: Context<Story>| async move {
        ctx.emit(json!({ "half": true }));
        ctx.port().emit(StreamMode::Messages, json!("tok"));
        ctx.interrupt("clarification", "sure?").await?;
        Ok(say("a"))
    });
    let graph = graph(|graph| graph.node("a", speaks).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let (sender, mut events) = mpsc::channel(100);
    let options =
        || RunOptions { wants: Wants::ALL, events: Some(sender.clone()), ..RunOptions::default() };
    let outcome = runner.start(thread, input(), options()).await.unwrap();
    let id = interrupts(&outcome)[0].id;
    runner.answer(thread, id, &json!("yes")).await.unwrap();
    runner.resume(thread, options()).await.unwrap();
    drop(sender);
    let mut heard_events: Vec<RunEvent<Story>> = Vec::new();
    while let Some(event) = events.recv().await {
        heard_events.push(event);
    }
    let shown = |mode| -> Vec<String> {
        let types = heard_events.iter().filter(|event| event.is_in(mode));
        types
            .map(|event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        shown(StreamMode::Tasks),
        ["task_started", "task_ended", "task_started", "task_ended"]
    );
    assert_eq!(shown(StreamMode::Updates), ["interrupted", "update"]);
    assert_eq!(shown(StreamMode::Values), ["interrupted", "values"]);
    assert_eq!(shown(StreamMode::Checkpoints), ["checkpoint"]);
    assert_eq!(shown(StreamMode::Debug).len(), 5);
    assert_eq!(shown(StreamMode::Custom), ["published", "published"]);
    assert_eq!(shown(StreamMode::Messages).len(), 2);
    let values = heard_events.iter().find_map(|event| match event {
        RunEvent::Values { step, state } => Some((*step, lines(state).join(" "))),
        _ => None,
    });
    assert_eq!(values, Some((2, "input a".to_owned())));
}

async fn a_listener_that_left_does_not_stop_the_run(on: &Fixture) {
    let world = World::default();
    let graph = graph(|graph| graph.node("a", world.speaker("a")).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let (sender, events) = mpsc::channel(1);
    drop(events);
    let options = RunOptions { wants: Wants::ALL, events: Some(sender), ..RunOptions::default() };
    assert!(is_done(&runner.start(thread, input(), options).await.unwrap()));
}
