//! Runs that are told: order, crashes, slow listeners, a database that does not answer.

use std::result::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use perihelion_engine::bus::{Bus, Subscription, ThreadEvent};
use perihelion_engine::checkpoint::{Error, EventPosition, EventRow, Fence, Store};
use perihelion_engine::graph::{Context, Graph, NodeOutput, StreamMode, Target, node_fn};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{RunOptions, RunResult};
use serde_json::json;
use tokio::sync::Notify;

use super::{all, bus, has_no_gap, kind, steps, until_ended};
use crate::runner::world::*;
use crate::store_suite::stores::Fixture;

crate::store_suite::on_every_store_sealed_too!(
    events_of_a_run_cover_its_input_to_its_end,
    a_follower_with_some_of_the_events_receives_the_rest_once,
    another_process_receives_events_during_a_run,
    events_of_a_run_without_its_process_are_published_once,
    committed_but_unpublished_events_are_published_by_the_next_run,
    a_wake_up_reaches_waiters_without_an_event,
    a_slow_follower_delays_no_other,
    a_run_faster_than_the_event_database_loses_no_step,
    a_run_without_events_leaves_no_row,
    events_of_a_fork_start_at_the_fork,
);

fn published_on(bus: &Arc<dyn Bus>) -> RunOptions<Story> {
    RunOptions { publish: Some(Arc::clone(bus)), ..RunOptions::default() }
}

/// Node `a` streams an answer in pieces, then `b` speaks.
fn streaming(world: &World) -> Arc<Graph<Story>> {
    let speaks = node_fn(|ctx: Context<Story>| async move {
        ctx.emit(json!({ "half": true }));
        for piece in ["Hel", "lo ", "world"] {
            ctx.port().emit(StreamMode::Messages, json!({ "text": piece }));
        }
        Ok(say("a"))
    });
    graph(|g| g.node("a", speaks).node("b", world.speaker("b")).entry("a").edge("a", "b"))
}

/// Counts to a number, one step each.
fn counting(upto: usize) -> Arc<Graph<Story>> {
    let count = node_fn(move |ctx: Context<Story>| async move {
        let more = lines(ctx.state()).len() < upto;
        let next = more.then(|| Target::node("count"));
        Ok(NodeOutput::goto(StoryUpdate::new().lines(vec!["more".to_owned()]), next))
    });
    graph(|g| g.node("count", count).entry("count"))
}

async fn events_of_a_run_cover_its_input_to_its_end(on: &Fixture) {
    let world = World::default();
    let bus = bus(on, &on.store);
    let runner = runner(&streaming(&world), &on.store);
    let thread = world.thread(&runner).await;
    let outcome = runner.start(thread, input(), published_on(&bus)).await.unwrap();
    assert!(is_done(&outcome));
    let events = all(&bus, thread).await;
    has_no_gap(&events);
    assert_eq!(events[0].id, 1);
    assert!(events.iter().all(|events| events.run == outcome.run));
    let kinds: Vec<&str> = events.iter().map(kind).collect();
    let expected = [
        "checkpoint",
        "task_started",
        "published",
        "published",
        "task_ended",
        "checkpoint",
        "task_started",
        "task_ended",
        "checkpoint",
        "run_ended",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(steps(&events), [1, 2, 3]);
    assert_eq!(events[0].event["next"], json!(["a"]));
    assert_eq!(events[3].event["payload"]["text"], "Hello world", "pieces are joined");
    let end = &events.last().unwrap().event;
    assert_eq!(
        (&end["status"], &end["step"], &end["error"]),
        (&json!("done"), &json!(3), &json!(null))
    );
    let mark = on.store.event_position(thread).await.unwrap();
    assert_eq!(mark, EventPosition { last: 10, step: 3 });
    bus.close().await;
}

async fn a_follower_with_some_of_the_events_receives_the_rest_once(on: &Fixture) {
    let world = World::default();
    let bus = bus(on, &on.store);
    let runner = runner(&streaming(&world), &on.store);
    let thread = world.thread(&runner).await;
    for _ in 0..2 {
        runner.start(thread, input(), published_on(&bus)).await.unwrap();
    }
    let events = all(&bus, thread).await;
    assert_eq!(steps(&events), [1, 2, 3, 4, 5, 6]);
    for heard in 0..events.len() {
        let rest = bus.subscribe(thread, heard as u64).take(events.len() - heard);
        let rest: Vec<ThreadEvent> = rest.map(Result::unwrap).collect().await;
        assert_eq!(rest, events[heard..]);
    }
    bus.close().await;
}

/// S2.12
async fn another_process_receives_events_during_a_run(on: &Fixture) {
    let world = World::default();
    let gate = Gate::closed();
    let gate_of_node = gate.clone();
    let waits = node_fn(move |_| {
        let gate = gate_of_node.clone();
        async move {
            gate.pass().await;
            Ok(say("waited"))
        }
    });
    let graph =
        graph(|g| g.node("a", world.speaker("a")).node("b", waits).entry("a").edge("a", "b"));
    let bus = bus(on, &on.store);
    let elsewhere = on.another().await;
    let listening = self::bus(on, &elsewhere);
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let mut heard = listening.subscribe(thread, 0);
    let (outcome, events) =
        futures::future::join(runner.start(thread, input(), published_on(&bus)), async {
            let mut events: Vec<ThreadEvent> = Vec::new();
            // The second node has started: that is heard while it is held.
            while events.last().is_none_or(|one| one.event["node"] != "b") {
                events.push(heard.next().await.unwrap().unwrap());
            }
            gate.open();
            events.extend(until_ended(&mut heard, "done").await);
            events
        })
        .await;
    assert!(is_done(&outcome.unwrap()));
    assert_eq!(events, all(&bus, thread).await);
    assert_eq!(steps(&events), [1, 2, 3]);
    listening.close().await;
    bus.close().await;
}

async fn events_of_a_run_without_its_process_are_published_once(on: &Fixture) {
    let world = World::default();
    let gate = Gate::closed();
    let gate_of_node = gate.clone();
    let writes = node_fn(move |ctx: Context<Story>| {
        let gate = gate_of_node.clone();
        async move {
            ctx.port().emit(StreamMode::Messages, json!({ "text": "half an ans" }));
            gate.pass().await;
            Ok(say("b"))
        }
    });
    let graph =
        graph(|g| g.node("a", world.speaker("a")).node("b", writes).entry("a").edge("a", "b"));
    let bus = bus(on, &on.store);
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let mut heard = bus.subscribe(thread, 0);
    let mut events: Vec<ThreadEvent> = Vec::new();
    // The process ends when a piece of the answer has been told.
    tokio::select! {
        ended = runner.start(thread, input(), published_on(&bus)) => panic!("{ended:?}"),
        () = async {
            while events.last().is_none_or(|one| one.event["mode"] != "messages") {
                events.push(heard.next().await.unwrap().unwrap());
            }
        } => {}
    }
    gate.open();
    let outcome = runner.resume(thread, published_on(&bus)).await.unwrap();
    assert_eq!(outcome.result, RunResult::Done);
    events.extend(until_ended(&mut heard, "done").await);
    has_no_gap(&events);
    assert_eq!(steps(&events), [1, 2, 3], "each once");
    let again = events.iter().position(|one| kind(one) == "step_restarted").unwrap();
    assert_eq!(events[again].event["step"], 3);
    assert_eq!(events[again].run, outcome.run);
    let pieces = |events: &[ThreadEvent]| {
        events.iter().filter(|one| one.event["mode"] == "messages").count()
    };
    assert_eq!((pieces(&events[..again]), pieces(&events[again..])), (1, 1));
    assert_eq!(events, all(&bus, thread).await);
    bus.close().await;
}

/// A bus whose database does not answer until it is told to.
#[derive(Debug)]
struct Slow {
    inner: Arc<dyn Bus>,
    is_open: AtomicBool,
    opened: Notify,
}

impl Slow {
    fn new(inner: &Arc<dyn Bus>) -> Arc<Self> {
        let inner = Arc::clone(inner);
        let is_open = AtomicBool::new(false);
        Arc::new(Self { inner, is_open, opened: Notify::new() })
    }

    fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
        self.opened.notify_one();
    }
}

#[async_trait]
impl Bus for Slow {
    fn store(&self) -> &Arc<dyn Store> {
        self.inner.store()
    }

    async fn publish(&self, fence: Fence, batch: &EventRow) -> Result<(), Error> {
        while !self.is_open.load(Ordering::SeqCst) {
            self.opened.notified().await;
        }
        self.inner.publish(fence, batch).await
    }

    async fn read(&self, thread: ThreadId, after: u64) -> Result<Vec<ThreadEvent>, Error> {
        self.inner.read(thread, after).await
    }

    fn subscribe(&self, thread: ThreadId, after: u64) -> Subscription {
        self.inner.subscribe(thread, after)
    }

    async fn call(&self, thread: ThreadId) {
        self.inner.call(thread).await;
    }

    fn calls(
        &self,
        thread: ThreadId,
    ) -> perihelion_engine::bus::CallReceiver<ThreadId, perihelion_engine::bus::Notice> {
        self.inner.calls(thread)
    }

    async fn prune(&self) {
        self.inner.prune().await;
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

async fn committed_but_unpublished_events_are_published_by_the_next_run(on: &Fixture) {
    let world = World::default();
    let gate = Gate::closed();
    let gate_of_node = gate.clone();
    let waits = node_fn(move |_| {
        let gate = gate_of_node.clone();
        async move {
            gate.pass().await;
            Ok(say("waited"))
        }
    });
    let graph = graph(|g| {
        let graph = g.node("a", world.speaker("a")).node("b", world.speaker("b"));
        graph.node("c", waits).entry("a").edge("a", "b").edge("b", "c")
    });
    let bus = bus(on, &on.store);
    let deaf: Arc<dyn Bus> = Slow::new(&bus);
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    crash_at(&gate, runner.start(thread, input(), published_on(&deaf))).await;
    assert_eq!(on.store.info(thread).await.unwrap().head, 3);
    assert_eq!(all(&bus, thread).await, []);
    gate.open();
    runner.resume(thread, published_on(&bus)).await.unwrap();
    let events = all(&bus, thread).await;
    has_no_gap(&events);
    assert_eq!(steps(&events), [1, 2, 3, 4]);
    let next: Vec<_> = events.iter().take(3).map(|one| one.event["next"].clone()).collect();
    assert_eq!(next, [json!(["a"]), json!(["b"]), json!(["c"])]);
    bus.close().await;
}

async fn a_slow_follower_delays_no_other(on: &Fixture) {
    let world = World::default();
    let bus = bus(on, &on.store);
    let runner = runner(&counting(40), &on.store);
    let thread = world.thread(&runner).await;
    let mut heard = bus.subscribe(thread, 0);
    let outcome = runner.start(thread, input(), published_on(&bus)).await.unwrap();
    assert!(is_done(&outcome), "nobody has heard anything of it yet");
    let events = until_ended(&mut heard, "done").await;
    has_no_gap(&events);
    assert_eq!(steps(&events), (1..=outcome.head).collect::<Vec<_>>());
    bus.close().await;
}

/// More events than may wait for the database.
const STEPS: usize = 600;

async fn a_run_faster_than_the_event_database_loses_no_step(on: &Fixture) {
    let world = World::default();
    let bus = bus(on, &on.store);
    let slow = Slow::new(&bus);
    let publish: Arc<dyn Bus> = Arc::clone(&slow) as _;
    let runner = runner(&counting(STEPS), &on.store);
    let thread = world.thread(&runner).await;
    let (outcome, ()) =
        futures::future::join(runner.start(thread, input(), published_on(&publish)), async {
            // Every step is committed while not one event could be written.
            while on.store.info(thread).await.unwrap().head < STEPS as u64 + 1 {
                tokio::task::yield_now().await;
            }
            assert_eq!(on.store.event_position(thread).await.unwrap(), EventPosition::default());
            slow.open();
        })
        .await;
    let head = outcome.unwrap().head;
    let events = all(&bus, thread).await;
    has_no_gap(&events);
    assert_eq!(steps(&events), (1..=head).collect::<Vec<_>>());
    assert_eq!(kind(events.last().unwrap()), "run_ended");
    let starts = events.iter().filter(|one| kind(one) == "task_started").count();
    assert!(starts < STEPS, "other events were left out, so that memory stays bounded: {starts}");
    bus.close().await;
}

async fn a_run_without_events_leaves_no_row(on: &Fixture) {
    let world = World::default();
    let bus = bus(on, &on.store);
    let runner = runner(&streaming(&world), &on.store);
    let thread = world.thread(&runner).await;
    start(&runner, thread).await;
    assert_eq!(on.store.event_position(thread).await.unwrap(), EventPosition::default());
    assert_eq!(all(&bus, thread).await, []);
    // A thread that nobody was told of is told from the input under way.
    runner.start(thread, input(), published_on(&bus)).await.unwrap();
    assert_eq!(steps(&all(&bus, thread).await), [4, 5, 6]);
    bus.close().await;
}

async fn events_of_a_fork_start_at_the_fork(on: &Fixture) {
    let world = World::default();
    let bus = bus(on, &on.store);
    let runner = runner(&streaming(&world), &on.store);
    let thread = world.thread(&runner).await;
    runner.start(thread, input(), published_on(&bus)).await.unwrap();
    let new = crate::store_suite::writer::new_thread();
    let new = perihelion_engine::checkpoint::NewThread { graph: "story".to_owned(), ..new };
    let fork = on.store.fork(thread, 2, new).await.unwrap().id;
    runner.resume(fork, published_on(&bus)).await.unwrap();
    let events = all(&bus, fork).await;
    assert_eq!((steps(&events), events[0].id), (vec![3], 1));
    assert_eq!(steps(&all(&bus, thread).await), [1, 2, 3]);
    bus.close().await;
}

async fn a_wake_up_reaches_waiters_without_an_event(on: &Fixture) {
    let mine = bus(on, &on.store);
    let others = bus(on, &on.store);
    let thread = ThreadId::new();
    let is_shared = on.url.as_deref().is_some_and(|url| url.starts_with("postgres"));
    let mut calls = if is_shared { others.calls(thread) } else { mine.calls(thread) };
    loop {
        mine.call(thread).await;
        // The connection that listens may stand a moment later.
        tokio::select! {
            _ = calls.called() => break,
            () = perihelion_engine::clock::sleep(Duration::from_millis(50)) => {}
        }
    }
    mine.close().await;
    others.close().await;
}
