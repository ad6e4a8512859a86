//! A graph as a node: its own thread, its own recovery, its questions and events the parent's.

use std::sync::Arc;
use std::time::Duration;

use perihelion_engine::checkpoint::{Claim, NewThread, ThreadStatus};
use perihelion_engine::failpoint::{Point, Side};
use perihelion_engine::graph::{
    Context, Graph, GraphBuilder, Node, NodeError, RunEvent, StreamMode, Wants, node_fn,
};
use perihelion_engine::runner::{Durability, RunOptions, RunResult, Runner, Subgraph};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::world::*;
use crate::store_suite::{
    on_every_store,
    stores::Fixture,
    writer::{Writer, encoded, new_thread},
};

on_every_store!(
    a_subgraph_runs_in_a_separate_thread_named_by_its_place,
    a_crash_inside_a_subgraph_resumes_inside_it,
    a_question_of_a_nested_subgraph_is_answered_through_the_parent,
    an_edit_of_the_parent_closes_the_questions_of_its_subgraphs,
    an_edit_after_steps_that_a_crash_lost_runs_their_subgraph_again,
    a_stop_of_the_parent_stops_its_subgraph,
    a_failure_inside_is_the_parents_and_is_tried_again_with_it,
    events_of_nested_subgraphs_reach_the_parent_with_their_place,
    a_thread_that_a_client_made_under_a_subgraph_s_id_is_not_its_thread,
    a_subgraph_continues_what_its_last_holder_stored_during_the_wait,
);

fn inner(world: &World, node: Arc<dyn Node<Story>>) -> Arc<Graph<Story>> {
    GraphBuilder::new("inner")
        .node("first", world.speaker("first"))
        .node("second", node)
        .entry("first")
        .edge("first", "second")
        .build()
        .unwrap()
}

fn as_node(on: &Fixture, child: &Arc<Graph<Story>>) -> Arc<dyn Node<Story>> {
    with_lease(on, child, Duration::from_secs(15))
}

fn with_lease(on: &Fixture, child: &Arc<Graph<Story>>, lease: Duration) -> Arc<dyn Node<Story>> {
    let mut runner = Runner::new(Arc::clone(child), Arc::clone(&on.store));
    runner.lease = lease;
    Arc::new(Subgraph::<Story, Story>::new(
        runner,
        |ctx| Ok(StoryUpdate::new().lines(vec![format!("from {}", ctx.state().last)])),
        |_, child| Ok(say(lines(child).join("+"))),
    ))
}

fn outer(world: &World, team: Arc<dyn Node<Story>>) -> Arc<Graph<Story>> {
    graph(|graph| {
        graph.node("a", world.speaker("a")).node("team", team).entry("a").edge("a", "team")
    })
}

fn asks() -> Arc<dyn Node<Story>> {
    node_fn(|ctx: Context<Story>| async move {
        let answer = ctx.interrupt("clarification", "which?").await?;
        Ok(say(answer.as_str().unwrap_or("?")))
    })
}

async fn a_subgraph_runs_in_a_separate_thread_named_by_its_place(on: &Fixture) {
    let world = World::default();
    let child = inner(&world, world.speaker("second"));
    let runner = runner(&outer(&world, as_node(on, &child)), &on.store);
    let thread = world.thread(&runner).await;
    let outcome = start(&runner, thread).await;
    assert_eq!(outcome.state.last, "from a+first+second");
    let info = on.store.info(thread.child("team:3:0")).await.unwrap();
    assert_eq!((info.root, &*info.namespace, &*info.graph), (Some(thread), "team:3:0", "inner"));
    assert_eq!((info.status, info.head), (ThreadStatus::Idle, 3));
}

async fn a_crash_inside_a_subgraph_resumes_inside_it(on: &Fixture) {
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
    let runner = runner(&outer(&world, as_node(on, &inner(&world, slow))), &on.store);
    let thread = world.thread(&runner).await;
    crash_at(&gate, runner.start(thread, input(), RunOptions::default())).await;
    gate.open();
    let outcome = resume(&runner, thread).await;
    assert_eq!(outcome.state.last, "from a+first+slow");
    assert_eq!((world.count("a"), world.count("first")), (1, 1));
}

async fn a_question_of_a_nested_subgraph_is_answered_through_the_parent(on: &Fixture) {
    let world = World::default();
    let middle = GraphBuilder::new("middle")
        .node("deep", as_node(on, &inner(&world, asks())))
        .entry("deep")
        .build()
        .unwrap();
    let runner = runner(&outer(&world, as_node(on, &middle)), &on.store);
    let thread = world.thread(&runner).await;
    let outcome = start(&runner, thread).await;
    let [question] = interrupts(&outcome) else { panic!() };
    assert_eq!((&*question.node, &question.payload), ("second", &json!("which?")));
    let open = runner.open_interrupts(thread).await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(on.store.info(open[0].thread).await.unwrap().namespace, "team:3:0|deep:2:0");
    runner.answer(thread, question.id, &json!("that one")).await.unwrap();
    let second = runner.answer(thread, question.id, &json!("this one")).await;
    assert!(second.unwrap_err().to_string().contains("already answered"));
    let outcome = resume(&runner, thread).await;
    assert!(outcome.state.last.ends_with("first+that one"), "{}", outcome.state.last);
    assert_eq!((world.count("a"), world.count("first")), (1, 1));
}

async fn an_edit_of_the_parent_closes_the_questions_of_its_subgraphs(on: &Fixture) {
    let world = World::default();
    let runner = runner(&outer(&world, as_node(on, &inner(&world, asks()))), &on.store);
    let thread = world.thread(&runner).await;
    let outcome = start(&runner, thread).await;
    let id = interrupts(&outcome)[0].id;
    runner.update_state(thread, StoryUpdate::new(), perihelion_engine::graph::END).await.unwrap();
    assert!(runner.open_interrupts(thread).await.unwrap().is_empty());
    let late = runner.answer(thread, id, &json!("late")).await.unwrap_err();
    assert!(late.to_string().contains(&id.to_string()), "{late}");
}

async fn an_edit_after_steps_that_a_crash_lost_runs_their_subgraph_again(on: &Fixture) {
    let world = World::default();
    let gate = Gate::closed();
    let gate_of_node = gate.clone();
    let last = node_fn(move |_| {
        let gate = gate_of_node.clone();
        async move {
            gate.pass().await;
            Ok(say("last"))
        }
    });
    let team = as_node(on, &inner(&world, world.speaker("second")));
    let graph = graph(|graph| {
        let graph = graph.node("a", world.speaker("a")).node("team", team).node("last", last);
        graph.entry("a").edge("a", "team").edge("team", "last")
    });
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let options = RunOptions { durability: Durability::Exit, ..RunOptions::default() };
    crash_at(&gate, runner.start(thread, input(), options)).await;
    gate.open();
    let edit = StoryUpdate::new().last("edited".to_owned());
    runner.update_state(thread, edit, "a").await.unwrap();
    let outcome = resume(&runner, thread).await;
    assert_eq!(lines(&outcome.state), ["input", "from edited+first+second", "last"]);
}

async fn a_stop_of_the_parent_stops_its_subgraph(on: &Fixture) {
    let world = World::default();
    let stop = CancellationToken::new();
    let token = stop.clone();
    let counted = world.clone();
    let waits_once = node_fn(move |ctx: Context<Story>| {
        let world = counted.clone();
        let token = token.clone();
        async move {
            world.note("waits");
            if world.count("waits") == 1 {
                token.cancel();
                ctx.port().until_cancelled().await;
                return Err(NodeError::Cancelled);
            }
            Ok(say("second"))
        }
    });
    let runner = runner(&outer(&world, as_node(on, &inner(&world, waits_once))), &on.store);
    let thread = world.thread(&runner).await;
    let options = RunOptions { cancel: stop, ..RunOptions::default() };
    let outcome = runner.start(thread, input(), options).await.unwrap();
    assert_eq!(outcome.result, RunResult::Cancelled);
    let child = on.store.info(thread.child("team:3:0")).await.unwrap();
    assert_eq!(
        (child.status, child.owner),
        (ThreadStatus::Failed, None),
        "given back, not dropped"
    );
    assert_eq!(resume(&runner, thread).await.state.last, "from a+first+second");
}

async fn a_failure_inside_is_the_parents_and_is_tried_again_with_it(on: &Fixture) {
    let world = World::default();
    let counted = world.clone();
    let flaky = node_fn(move |_| {
        let world = counted.clone();
        async move {
            world.note("flaky");
            match world.count("flaky") {
                1 => Err(NodeError::failed("bad", "out of ink")),
                _ => Ok(say("ok")),
            }
        }
    });
    let runner = runner(&outer(&world, as_node(on, &inner(&world, flaky))), &on.store);
    let thread = world.thread(&runner).await;
    let RunResult::Failed(error) = start(&runner, thread).await.result else { panic!() };
    assert_eq!(error.to_string(), "the node team failed: the node second failed: out of ink");
    assert_eq!(resume(&runner, thread).await.state.last, "from a+first+ok");
}

async fn events_of_nested_subgraphs_reach_the_parent_with_their_place(on: &Fixture) {
    let world = World::default();
    let speaks = node_fn(|ctx: Context<Story>| async move {
        ctx.emit(json!("half"));
        Ok(say("second"))
    });
    let middle = GraphBuilder::new("middle")
        .node("deep", as_node(on, &inner(&world, speaks)))
        .entry("deep")
        .build()
        .unwrap();
    let runner = runner(&outer(&world, as_node(on, &middle)), &on.store);
    let thread = world.thread(&runner).await;
    let (sender, mut events) = mpsc::channel(500);
    let wants = Wants { updates: true, ..Wants::default() };
    let options = RunOptions { wants, events: Some(sender), ..RunOptions::default() };
    runner.start(thread, input(), options).await.unwrap();
    let mut updates = Vec::new();
    let mut custom = Vec::new();
    while let Some(event) = events.recv().await {
        if event.is_in(StreamMode::Custom) {
            custom.push(serde_json::to_value(&event).unwrap());
        } else if event.is_in(StreamMode::Updates) {
            updates.push(match event {
                RunEvent::Nested { namespace, event, .. } => {
                    format!("{namespace} {}", event["node"].as_str().unwrap())
                }
                RunEvent::Update { node, .. } => node,
                other => panic!("{other:?}"),
            });
        }
    }
    let team = "team:3:0";
    let deep = "team:3:0|deep:2:0";
    assert_eq!(
        updates,
        [
            "a".to_owned(),
            format!("{deep} first"),
            format!("{deep} second"),
            format!("{team} deep"),
            "team".into()
        ]
    );
    assert_eq!(custom.len(), 1);
    assert_eq!(
        (&custom[0]["namespace"], &custom[0]["event"]["payload"]),
        (&json!(deep), &json!("half"))
    );
}

async fn a_thread_that_a_client_made_under_a_subgraph_s_id_is_not_its_thread(on: &Fixture) {
    let world = World::default();
    let child = inner(&world, world.speaker("second"));
    let parent = runner(&outer(&world, as_node(on, &child)), &on.store);
    let thread = world.thread(&parent).await;
    let planted = runner(&child, &on.store);
    planted.create(thread.child("team:3:0"), None).await.unwrap();
    planted.start(thread.child("team:3:0"), input(), RunOptions::default()).await.unwrap();
    let refused = match parent.start(thread, input(), RunOptions::default()).await {
        Ok(outcome) => format!("{:?}", outcome.result),
        Err(error) => error.to_string(),
    };
    assert!(refused.contains("exists"), "{refused}");
    assert_eq!(world.count("second"), 1, "the planted thread ran, and nothing else");
}

/// The parent was taken over; the process that ran the subgraph stores its input before it notices.
async fn a_subgraph_continues_what_its_last_holder_stored_during_the_wait(on: &Fixture) {
    let world = World::default();
    let child = inner(&world, world.speaker("second"));
    let parent = runner(&outer(&world, with_lease(on, &child, Duration::from_secs(4))), &on.store);
    let thread = world.thread(&parent).await;
    let place = "team:3:0";
    let new = NewThread {
        id: thread.child(place),
        graph: "inner".to_owned(),
        root: Some(thread),
        namespace: place.to_owned(),
        ..new_thread()
    };
    let made = on.store.create(new).await.unwrap().id;
    let claim = Claim::new(made, "elsewhere/boot/1/1", Duration::from_secs(2));
    let fence = on.store.claim(claim).await.unwrap().fence;
    let mut stale = Writer::claimed(&on.store, made, fence, 0);
    let other = world.thread(&runner(&child, &on.store)).await;
    start(&runner(&child, &on.store), other).await;
    let mut input_step = stale.next(encoded(&json!([])));
    input_step.step = on.store.history(other, Some(2), 1).await.unwrap().remove(0);
    let (claimed, mut claims) = mpsc::unbounded_channel();
    let me = std::thread::current().id();
    at_points(move |point, side| {
        if (std::thread::current().id(), point, side) == (me, Point::Claim, Side::After) {
            let _ = claimed.send(());
        }
    });
    let (outcome, ()) = futures::future::join(start(&parent, thread), async {
        // That of the parent, and that of the child, which is refused.
        for _ in 0..2 {
            claims.recv().await.unwrap();
        }
        stale.commit(&input_step).await.unwrap();
    })
    .await;
    assert!(is_done(&outcome), "{:?}", outcome.result);
    assert_eq!(outcome.state.last, "input+first+second");
}
