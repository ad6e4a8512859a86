//! Questions to people: by id, several at once, each answered once.

use perihelion_engine::checkpoint::{Error as StoreError, ThreadStatus};
use perihelion_engine::graph::{Context, Node, node_fn};
use perihelion_engine::ids::{InterruptId, ThreadId};
use perihelion_engine::runner::{Error, RunOptions};
use serde_json::json;
use std::sync::Arc;

use super::world::*;
use crate::store_suite::{on_every_store, stores::Fixture};

on_every_store!(
    several_questions_are_open_at_once_and_answered_one_by_one,
    a_second_answer_is_refused_and_so_is_an_unknown_question,
    a_question_that_an_edit_abandoned_can_no_longer_be_answered,
    answers_given_while_other_tasks_still_work_are_found_at_the_resume,
);

fn asker(world: &World, name: &'static str) -> Arc<dyn Node<Story>> {
    let world = world.clone();
    node_fn(move |ctx: Context<Story>| {
        let world = world.clone();
        async move {
            world.note(name);
            let answer = ctx.interrupt("clarification", json!({ "from": name })).await?;
            Ok(say(format!("{name} {}", answer.as_str().unwrap_or("?"))))
        }
    })
}

async fn several_questions_are_open_at_once_and_answered_one_by_one(on: &Fixture) {
    let world = World::default();
    let graph = graph(|graph| {
        graph
            .node("a", asker(&world, "a"))
            .node("b", asker(&world, "b"))
            .node("c", world.speaker("c"))
            .entry("a")
            .entry("b")
            .entry("c")
    });
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let outcome = start(&runner, thread).await;
    let [a, b] = interrupts(&outcome) else { panic!() };
    assert_eq!((&a.payload["from"], &b.payload["from"]), (&json!("a"), &json!("b")));
    assert_eq!(on.store.info(thread).await.unwrap().status, ThreadStatus::Interrupted);
    let refused = runner.start(thread, input(), RunOptions::default()).await;
    assert!(matches!(refused, Err(Error::Unfinished { status: "interrupted", .. })), "{refused:?}");

    runner.answer(thread, b.id, &json!("B")).await.unwrap();
    let outcome = resume(&runner, thread).await;
    assert_eq!(interrupts(&outcome), std::slice::from_ref(a));
    runner.answer(thread, a.id, &json!("A")).await.unwrap();
    let outcome = resume(&runner, thread).await;
    assert_eq!(lines(&outcome.state), ["input", "a A", "b B", "c"]);
    assert_eq!((world.count("c"), world.count("b"), world.count("a")), (1, 2, 3));
}

async fn a_second_answer_is_refused_and_so_is_an_unknown_question(on: &Fixture) {
    let world = World::default();
    let graph = graph(|graph| graph.node("a", asker(&world, "a")).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let other = world.thread(&runner).await;
    let outcome = start(&runner, thread).await;
    let id = interrupts(&outcome)[0].id;
    let foreign = runner.answer(other, id, &json!("x")).await;
    assert!(
        matches!(foreign, Err(Error::Store(StoreError::UnknownInterrupt(it))) if it == id),
        "{foreign:?}"
    );
    runner.answer(thread, id, &json!("one")).await.unwrap();
    let second = runner.answer(thread, id, &json!("two")).await;
    assert!(
        matches!(second, Err(Error::Store(StoreError::InterruptClosed(it))) if it == id),
        "{second:?}"
    );
    let nobody = InterruptId::derive(ThreadId::new(), 1, 0, b"x");
    let unknown = runner.answer(thread, nobody, &json!("x")).await;
    assert!(matches!(unknown, Err(Error::Store(StoreError::UnknownInterrupt(_)))), "{unknown:?}");
    assert_eq!(resume(&runner, thread).await.state.last, "a one");
}

async fn a_question_that_an_edit_abandoned_can_no_longer_be_answered(on: &Fixture) {
    let world = World::default();
    let graph = graph(|graph| {
        graph.node("a", asker(&world, "a")).node("b", world.speaker("b")).entry("a").edge("a", "b")
    });
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let outcome = start(&runner, thread).await;
    let id = interrupts(&outcome)[0].id;
    let update = StoryUpdate::new().lines(vec!["edited".into()]);
    let view = runner.update_state(thread, update, "a").await.unwrap();
    assert_eq!((view.seq, &view.next[..]), (2, &["b".to_owned()][..]));
    assert!(runner.open_interrupts(thread).await.unwrap().is_empty());
    let late = runner.answer(thread, id, &json!("late")).await;
    assert!(matches!(late, Err(Error::Store(StoreError::InterruptClosed(_)))), "{late:?}");
    assert_eq!(lines(&resume(&runner, thread).await.state), ["input", "edited", "b"]);
}

async fn answers_given_while_other_tasks_still_work_are_found_at_the_resume(on: &Fixture) {
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
        graph.node("a", asker(&world, "a")).node("slow", slow).entry("slow").entry("a")
    });
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let (outcome, ()) = futures::future::join(start(&runner, thread), async {
        let question = loop {
            match runner.open_interrupts(thread).await.unwrap().pop() {
                Some(question) => break question,
                None => tokio::task::yield_now().await,
            }
        };
        runner.answer(thread, question.id, &json!("early")).await.unwrap();
        gate.open();
    })
    .await;
    assert_eq!(interrupts(&outcome).len(), 1);
    assert_eq!(lines(&resume(&runner, thread).await.state), ["input", "slow", "a early"]);
}
