//! Tool calls are sent once, or asked about (X2).

use perihelion_engine::checkpoint::EffectStatus;
use perihelion_engine::graph::{EffectFailure, Node, NodeEntry, Outcome, RetryPolicy, node_fn};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{Error, RunOptions, Runner};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

use super::world::*;
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(
    a_call_with_an_unknown_outcome_asks_a_person,
    done_takes_the_result_the_person_gives,
    retry_sends_the_call_again_under_the_same_key,
    skip_reaches_the_node_and_is_permanent,
    an_answer_that_is_no_verdict_leaves_the_question_open,
    a_repeatable_call_is_sent_again_under_the_same_key,
    a_thread_made_again_under_its_name_calls_under_a_new_key,
    a_recorded_failure_is_part_of_the_history_and_only_a_retry_tries_again,
    a_possibly_sent_call_asks_a_person_in_the_running_process_too,
);

/// A node that calls a tool; the first call hangs at the gate, as if the process died while it was under way.
fn caller(world: &World, gate: &Gate, repeatable: bool) -> Arc<dyn Node<Story>> {
    let world = world.clone();
    let gate = gate.clone();
    node_fn(move |ctx| {
        let world = world.clone();
        let gate = gate.clone();
        async move {
            let first = world.seen().is_empty();
            let request = request(
                perihelion_engine::graph::EffectClass::Action { repeatable },
                "files.write",
                "a.txt",
            );
            let counted = world.clone();
            let perform = Box::new(move |key: String| {
                counted.note(format!("call {key}"));
                let gate = gate.clone();
                Box::pin(async move {
                    if first {
                        gate.pass().await;
                    }
                    Ok(json!("written"))
                }) as futures::future::BoxFuture<'_, _>
            });
            let outcome = ctx.effect(request, perform).await?;
            // A second question makes the node run once more after the call was decided.
            let extra = ctx.interrupt("clarification", "and then?").await?;
            let text = match outcome {
                Outcome::Value(value) => value.to_string(),
                Outcome::Failed(message) => message,
            };
            Ok(say(format!("{text} {extra}")))
        }
    })
}

/// Crashes a thread while its call is under way.
async fn crashed(on: &Fixture, world: &World, repeatable: bool) -> (Runner<Story>, ThreadId) {
    let gate = Gate::closed();
    let graph = graph(|graph| graph.node("agent", caller(world, &gate, repeatable)).entry("agent"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    crash_at(&gate, runner.start(thread, input(), RunOptions::default())).await;
    (runner, thread)
}

/// Answers the only open question and continues; answers the node's second question too.
async fn decide(runner: &Runner<Story>, thread: ThreadId, verdict: Value) -> String {
    let outcome = resume(runner, thread).await;
    let [question] = interrupts(&outcome) else { panic!() };
    assert_eq!(question.kind, "outcome_unknown");
    runner.answer(thread, question.id, &verdict).await.unwrap();
    let outcome = resume(runner, thread).await;
    let [question] = interrupts(&outcome) else { panic!() };
    assert_eq!(question.kind, "clarification");
    runner.answer(thread, question.id, &json!("go")).await.unwrap();
    let outcome = resume(runner, thread).await;
    assert!(is_done(&outcome));
    outcome.state.last.clone()
}

/// X2: Receivers remember keys for longer than a thread may last: the same id is not the same thread.
async fn a_thread_made_again_under_its_name_calls_under_a_new_key(on: &Fixture) {
    let world = World::default();
    let caller = {
        let world = world.clone();
        node_fn(move |ctx| {
            let world = world.clone();
            async move {
                world.call_tool(&ctx, true, || Ok(json!("written"))).await?;
                Ok(say("done"))
            }
        })
    };
    let graph = graph(|graph| graph.node("agent", caller).entry("agent"));
    let runner = runner(&graph, &on.store);
    let thread = ThreadId::new();
    for _ in 0..2 {
        runner.create(thread, Some("weekly".to_owned())).await.unwrap();
        assert!(is_done(&runner.start(thread, input(), RunOptions::default()).await.unwrap()));
        on.store.delete(thread).await.unwrap();
    }
    let [first, second] = &world.seen()[..] else { panic!("{:?}", world.seen()) };
    assert_ne!(first, second);
}

async fn a_call_with_an_unknown_outcome_asks_a_person(on: &Fixture) {
    let world = World::default();
    let (runner, thread) = crashed(on, &world, false).await;
    let [row] = &on.store.effects(thread, None).await.unwrap()[..] else { panic!() };
    assert_eq!(row.status, EffectStatus::Started, "the intent was durable before the call");
    for _ in 0..2 {
        let outcome = resume(&runner, thread).await;
        let [question] = interrupts(&outcome) else { panic!() };
        assert_eq!((&*question.kind, &*question.node), ("outcome_unknown", "agent"));
        assert_eq!(question.payload["tool"], "files.write");
        assert_eq!(question.payload["request"]["what"], "a.txt");
        assert_eq!(question.payload["choices"], json!(["done", "retry", "skip"]));
        assert_eq!(runner.open_interrupts(thread).await.unwrap()[0].id, question.id);
    }
    assert_eq!(world.seen().len(), 1, "it was not sent again");
}

async fn done_takes_the_result_the_person_gives(on: &Fixture) {
    let world = World::default();
    let (runner, thread) = crashed(on, &world, false).await;
    let last = decide(&runner, thread, json!({ "outcome": "done", "result": "by hand" })).await;
    assert_eq!(last, "\"by hand\" \"go\"");
    assert_eq!(world.seen().len(), 1);
}

async fn retry_sends_the_call_again_under_the_same_key(on: &Fixture) {
    let world = World::default();
    let (runner, thread) = crashed(on, &world, false).await;
    assert_eq!(decide(&runner, thread, json!({ "outcome": "retry" })).await, "\"written\" \"go\"");
    let seen = world.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0], seen[1]);
    let effects = on.store.effects(thread, None).await.unwrap();
    let call = effects.iter().find(|row| row.name == "files.write").unwrap();
    assert_eq!((call.status, call.attempt), (EffectStatus::Done, 2));
}

/// A skipped call stays skipped however often its node runs again.
async fn skip_reaches_the_node_and_is_permanent(on: &Fixture) {
    let world = World::default();
    let (runner, thread) = crashed(on, &world, false).await;
    let last = decide(&runner, thread, json!({ "outcome": "skip" })).await;
    assert!(last.starts_with("a person decided to skip this call"), "{last}");
    assert_eq!(world.seen().len(), 1);
}

async fn an_answer_that_is_no_verdict_leaves_the_question_open(on: &Fixture) {
    let world = World::default();
    let (runner, thread) = crashed(on, &world, false).await;
    let outcome = resume(&runner, thread).await;
    let id = interrupts(&outcome)[0].id;
    let refused = runner.answer(thread, id, &json!("yes please")).await;
    let Err(Error::Answer { interrupt, reason }) = &refused else { panic!("{refused:?}") };
    assert!(*interrupt == id && reason.to_string().contains("retry"), "{reason}");
    // One that reached the store by another way is asked again instead of blocking the thread.
    let nonsense = perihelion_engine::checkpoint::Encoded::json(&json!("yes"), usize::MAX).unwrap();
    on.store.answer(id, &nonsense).await.unwrap();
    let outcome = resume(&runner, thread).await;
    let [again] = interrupts(&outcome) else { panic!() };
    assert!(again.id != id && again.payload["problem"].is_string(), "{again:?}");
    assert_eq!(decide(&runner, thread, json!({ "outcome": "retry" })).await, "\"written\" \"go\"");
}

async fn a_repeatable_call_is_sent_again_under_the_same_key(on: &Fixture) {
    let world = World::default();
    let (runner, thread) = crashed(on, &world, true).await;
    let outcome = resume(&runner, thread).await;
    assert_eq!(interrupts(&outcome)[0].kind, "clarification");
    let seen = world.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0], seen[1]);
}

async fn a_recorded_failure_is_part_of_the_history_and_only_a_retry_tries_again(on: &Fixture) {
    let world = World::default();
    let counted = world.clone();
    // The server refuses the first call; the node continues without it, asks, and in the end gives up.
    let node = node_fn(move |ctx: perihelion_engine::graph::Context<Story>| {
        let world = counted.clone();
        async move {
            let refuses = world.seen().is_empty();
            let outcome = world
                .call_tool(&ctx, false, || {
                    if refuses {
                        Err(EffectFailure::NoEffect("refused".into()))
                    } else {
                        Ok(json!("written"))
                    }
                })
                .await?;
            ctx.interrupt("clarification", format!("{outcome:?}")).await?;
            match outcome {
                Outcome::Value(value) => Ok(say(value.to_string())),
                Outcome::Failed(error) => {
                    Err(perihelion_engine::graph::NodeError::retryable("tool", error))
                }
            }
        }
    });
    let once_more = RetryPolicy { max_attempts: 2, ..RetryPolicy::NONE };
    let graph =
        graph(|graph| graph.entry_node("a", NodeEntry::new(node).retry(once_more)).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let first = start(&runner, thread).await;
    let id = interrupts(&first)[0].id;
    runner.answer(thread, id, &json!("continue")).await.unwrap();
    // The same question (and so the same id) shows that the node saw the same failure again; then it
    // fails, is tried once more, and that attempt sends the call again: the question is another one.
    let second = resume(&runner, thread).await;
    let again = &interrupts(&second)[0];
    assert!(again.id != id && again.payload.as_str().unwrap().contains("written"), "{again:?}");
    assert_eq!(world.seen().len(), 2);
    runner.answer(thread, again.id, &json!("continue")).await.unwrap();
    assert_eq!(resume(&runner, thread).await.state.last, "\"written\"");
    assert_eq!(world.seen().len(), 2);
}

async fn a_possibly_sent_call_asks_a_person_in_the_running_process_too(on: &Fixture) {
    let world = World::default();
    let counted = world.clone();
    let slow = node_fn(move |ctx: perihelion_engine::graph::Context<Story>| {
        let world = counted.clone();
        async move {
            let reply = || Err(EffectFailure::Unknown("the connection broke".into()));
            world.call_tool(&ctx, false, reply).await?;
            Ok(say("unreachable"))
        }
    });
    // Its time limit does not matter: the question is no failure.
    let entry = NodeEntry::new(slow).timeout(Duration::from_secs(60));
    let graph = graph(|graph| graph.entry_node("a", entry).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let outcome = start(&runner, thread).await;
    let [question] = interrupts(&outcome) else { panic!() };
    assert_eq!(question.payload["reason"], "the connection broke");
    let again = resume(&runner, thread).await;
    assert_eq!(interrupts(&again), interrupts(&outcome), "the question stays as it was asked");
    assert_eq!(world.seen().len(), 1);
}
