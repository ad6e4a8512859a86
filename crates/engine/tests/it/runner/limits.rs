//! Retries, time limits, stops, step limits, panics.

use perihelion_engine::checkpoint::ThreadStatus;
use perihelion_engine::graph::{
    Context, EffectClass, EngineError, Limits, Node, NodeEntry, NodeError, NodeOutput, RetryPolicy,
    Target, node_fn,
};
use perihelion_engine::runner::{RunOptions, RunResult};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

use super::world::*;
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(
    a_retryable_failure_is_tried_again_and_recorded_effects_are_not,
    a_failed_step_is_tried_again_by_a_resume,
    a_node_that_hangs_is_ended_by_its_time_limit,
    a_stop_lets_a_sent_call_finish_and_starts_no_new_task,
    a_stop_ends_one_run_and_not_its_neighbours,
    the_deadline_stops_what_runs_and_a_resume_continues,
    the_step_limit_ends_a_run_and_a_resume_has_it_again,
    a_node_that_panics_fails_only_its_run,
    a_wrong_target_is_named_and_a_corrected_graph_continues,
);

const QUICK: RetryPolicy = RetryPolicy {
    max_attempts: 3,
    initial: Duration::from_millis(1),
    factor: 1.0,
    max_delay: Duration::from_millis(1),
};

async fn a_retryable_failure_is_tried_again_and_recorded_effects_are_not(on: &Fixture) {
    let world = World::default();
    let counted = world.clone();
    let flaky = node_fn(move |ctx: Context<Story>| {
        let world = counted.clone();
        async move {
            world.ask_model(&ctx, "plan").await?;
            world.note("attempt");
            match world.count("attempt") {
                3 => Ok(say(format!("attempt {}", ctx.place().attempt))),
                _ => Err(NodeError::retryable("net", "refused")),
            }
        }
    });
    let graph = graph(|graph| graph.entry_node("a", NodeEntry::new(flaky).retry(QUICK)).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    assert_eq!(start(&runner, thread).await.state.last, "attempt 3");
    assert_eq!((world.count("attempt"), world.count("plan")), (3, 1));
}

async fn a_failed_step_is_tried_again_by_a_resume(on: &Fixture) {
    let world = World::default();
    let counted = world.clone();
    let flaky = node_fn(move |_| {
        let world = counted.clone();
        async move {
            world.note("attempt");
            match world.count("attempt") {
                1 => Err(NodeError::failed("bad", "out of ink")),
                _ => Ok(say("ok")),
            }
        }
    });
    let graph =
        graph(|graph| graph.node("a", flaky).node("b", world.speaker("b")).entry("a").entry("b"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let outcome = start(&runner, thread).await;
    let RunResult::Failed(error @ EngineError::Node { .. }) = &outcome.result else { panic!() };
    assert_eq!(error.to_string(), "the node a failed: out of ink");
    let info = on.store.info(thread).await.unwrap();
    assert_eq!(
        (info.status, info.error.as_deref()),
        (ThreadStatus::Failed, Some("the node a failed: out of ink"))
    );
    assert_eq!(lines(&resume(&runner, thread).await.state), ["input", "ok", "b"]);
    assert_eq!(world.count("b"), 1, "what had finished is kept");
    assert_eq!(on.store.info(thread).await.unwrap().error, None);
}

async fn a_node_that_hangs_is_ended_by_its_time_limit(on: &Fixture) {
    let world = World::default();
    let hangs = node_fn(|_| std::future::pending::<Result>());
    let entry = NodeEntry::new(hangs).timeout(Duration::from_millis(5)).retry(QUICK);
    let graph = graph(|graph| graph.entry_node("a", entry).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let outcome = start(&runner, thread).await;
    let RunResult::Failed(EngineError::Node { kind, message, .. }) = outcome.result else {
        panic!()
    };
    assert_eq!((&*kind, &*message), ("timeout", "it did not finish within 5ms"));
}

async fn a_stop_lets_a_sent_call_finish_and_starts_no_new_task(on: &Fixture) {
    let world = World::default();
    let gate = Gate::closed();
    let stop = CancellationToken::new();
    let caller = {
        let world = world.clone();
        let gate = gate.clone();
        node_fn(move |ctx: Context<Story>| {
            let world = world.clone();
            let gate = gate.clone();
            async move {
                let class = EffectClass::Action { repeatable: false };
                let sent = world.clone();
                let perform = Box::new(move |_| {
                    let world = sent.clone();
                    let gate = gate.clone();
                    Box::pin(async move {
                        world.note("sent");
                        gate.pass().await;
                        world.note("answered");
                        Ok(json!("written"))
                    }) as futures::future::BoxFuture<'_, _>
                });
                ctx.effect(request(class, "files.write", "a"), perform).await?;
                world.call_tool(&ctx, false, || Ok(json!("second"))).await?;
                Ok(say("done"))
            }
        })
    };
    let graph = graph(|graph| graph.node("a", caller).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let options = RunOptions { cancel: stop.clone(), ..RunOptions::default() };
    let (outcome, ()) = futures::future::join(runner.start(thread, input(), options), async {
        gate.reached().await;
        stop.cancel();
        gate.open();
    })
    .await;
    assert_eq!(outcome.unwrap().result, RunResult::Cancelled);
    assert_eq!(world.seen(), ["sent", "answered"]);
    let outcome = resume(&runner, thread).await;
    assert!(is_done(&outcome));
    assert_eq!(world.count("sent"), 1, "its outcome was recorded");
}

async fn a_stop_ends_one_run_and_not_its_neighbours(on: &Fixture) {
    let world = World::default();
    let gate = Gate::closed();
    let waits = node_fn(|ctx: Context<Story>| async move {
        ctx.port().until_cancelled().await;
        Err::<NodeOutput<Story>, _>(NodeError::Cancelled)
    });
    let slow = {
        let gate = gate.clone();
        node_fn(move |ctx: Context<Story>| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                assert!(!ctx.port().cancelled());
                Ok(say("slow"))
            }
        })
    };
    let one = runner(&graph(|graph| graph.node("a", waits).entry("a")), &on.store);
    let two = runner(&graph(|graph| graph.node("a", slow).entry("a")), &on.store);
    let first = world.thread(&one).await;
    let second = world.thread(&two).await;
    // The deadline of one run stops it alone, though both were given the same token.
    let cancel = CancellationToken::new();
    let short = RunOptions {
        deadline: Some(Duration::ZERO),
        cancel: cancel.clone(),
        ..RunOptions::default()
    };
    let long = RunOptions { cancel: cancel.clone(), ..RunOptions::default() };
    let (first, second) = futures::future::join(
        async {
            let outcome = one.start(first, input(), short).await.unwrap();
            gate.open();
            outcome
        },
        two.start(second, input(), long),
    )
    .await;
    assert_eq!(first.result, RunResult::Failed(EngineError::Deadline));
    assert!(is_done(&second.unwrap()) && !cancel.is_cancelled());
}

async fn the_deadline_stops_what_runs_and_a_resume_continues(on: &Fixture) {
    let world = World::default();
    let counted = world.clone();
    let waits_once = node_fn(move |ctx: Context<Story>| {
        let world = counted.clone();
        async move {
            world.note("waits");
            if world.count("waits") == 1 {
                ctx.port().until_cancelled().await;
                return Err(NodeError::Cancelled);
            }
            Ok(say("done"))
        }
    });
    let graph = graph(|graph| graph.node("a", waits_once).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let options = RunOptions { deadline: Some(Duration::from_millis(1)), ..RunOptions::default() };
    let outcome = runner.start(thread, input(), options).await.unwrap();
    assert_eq!(outcome.result, RunResult::Failed(EngineError::Deadline));
    assert_eq!(lines(&resume(&runner, thread).await.state), ["input", "done"]);
}

fn circling(world: &World, rounds: usize) -> Arc<dyn Node<Story>> {
    let world = world.clone();
    node_fn(move |_| {
        let world = world.clone();
        async move {
            world.note("round");
            let output = say("round");
            Ok(if world.count("round") < rounds {
                NodeOutput { goto: Some(vec![Target::node("a")]), ..output }
            } else {
                output
            })
        }
    })
}

async fn the_step_limit_ends_a_run_and_a_resume_has_it_again(on: &Fixture) {
    let world = World::default();
    let graph = graph(|graph| graph.node("a", circling(&world, 5)).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let three = || RunOptions {
        limits: Limits { max_steps: 3, ..Limits::default() },
        ..RunOptions::default()
    };
    let outcome = runner.start(thread, input(), three()).await.unwrap();
    assert_eq!(outcome.result, RunResult::Failed(EngineError::StepLimit(3)));
    assert_eq!((outcome.head, outcome.steps), (4, 3));
    let outcome = runner.resume(thread, three()).await.unwrap();
    assert!(is_done(&outcome));
    assert_eq!((outcome.head, outcome.steps, world.count("round")), (6, 2, 5));
}

async fn a_node_that_panics_fails_only_its_run(on: &Fixture) {
    let world = World::default();
    let counted = world.clone();
    let panics = node_fn(move |_| {
        counted.note("a");
        assert!(counted.count("a") > 1, "out of {}", "ink");
        async { Ok(say("ok")) }
    });
    let graph =
        graph(|graph| graph.node("a", panics).node("b", world.speaker("b")).entry("a").entry("b"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let outcome = start(&runner, thread).await;
    let RunResult::Failed(error) = &outcome.result else { panic!() };
    assert_eq!(error.to_string(), "the node a failed: it panicked: out of ink");
    assert_eq!(lines(&resume(&runner, thread).await.state), ["input", "ok", "b"]);
}

async fn a_wrong_target_is_named_and_a_corrected_graph_continues(on: &Fixture) {
    let world = World::default();
    let leads_to = |target: &'static str| {
        let world = world.clone();
        graph(|graph| {
            graph
                .node("a", world.speaker("a"))
                .node("b", world.speaker("b"))
                .entry("a")
                .route("a", move |_| vec![Target::node(target)])
        })
    };
    let wrong = runner(&leads_to("nobody"), &on.store);
    let thread = world.thread(&wrong).await;
    let outcome = start(&wrong, thread).await;
    let RunResult::Failed(error) = &outcome.result else { panic!() };
    assert!(error.to_string().starts_with("the node a leads to an unknown node: nobody;"));
    assert_eq!(lines(&outcome.state), ["input"], "the state is that of the newest committed step");
    let outcome = resume(&runner(&leads_to("b"), &on.store), thread).await;
    assert_eq!(lines(&outcome.state), ["input", "a", "b"]);
}
