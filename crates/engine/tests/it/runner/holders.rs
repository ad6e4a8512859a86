//! One runner per thread: the second is told so, and one that lost the thread writes nothing.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use futures::FutureExt as _;
use perihelion_engine::checkpoint::{
    Claim, Error as StoreError, Fence, MemoryStore, NewThread, RunEnd, RunStatus, Store,
    ThreadStatus,
};
use perihelion_engine::failpoint::{Point, Side};
use perihelion_engine::graph::{Context, Request, node_fn};
use perihelion_engine::ids::{RunId, ThreadId};
use perihelion_engine::runner::{AfterEdit, Error, RunOptions, Runner};
use serde_json::json;

use super::world::*;
use crate::store_suite::{on_durable_stores, on_every_store, stores::Fixture, writer::new_thread};

on_every_store!(
    of_two_runners_of_one_thread_the_second_receives_the_name_of_the_holder,
    a_run_that_was_dropped_frees_its_thread_at_once,
    a_runner_that_lost_its_thread_commits_no_step_and_sends_no_call,
    unreadable_threads_are_not_claimed,
);
on_durable_stores!(of_two_first_runs_of_one_thread_the_second_receives_the_name_of_the_holder);

async fn of_two_runners_of_one_thread_the_second_receives_the_name_of_the_holder(on: &Fixture) {
    let world = World::default();
    let gate = Gate::closed();
    let slow = {
        let gate = gate.clone();
        node_fn(move |ctx: Context<Story>| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                let request = ctx.place().request.as_ref().and_then(|one| one.downcast_ref());
                Ok(say(request.copied().unwrap_or("nothing")))
            }
        })
    };
    let with = |request: &Arc<&'static str>| RunOptions {
        request: Some(Arc::clone(request) as Request),
        ..RunOptions::default()
    };
    let first = Arc::new("first");
    let second = Arc::new("second");
    let graph = graph(|graph| graph.node("a", slow).entry("a"));
    let one = runner(&graph, &on.store);
    let two = runner(&graph, &on.another().await);
    let thread = world.thread(&one).await;
    let started = one.start(thread, input(), with(&first));
    let (outcome, ()) = futures::future::join(started, async {
        gate.reached().await;
        for refused in [
            two.resume(thread, with(&second)).await,
            two.start(thread, input(), with(&second)).await,
            two.resume(thread, RunOptions::default()).await,
        ] {
            assert!(matches!(&refused, Err(Error::Store(StoreError::Busy { .. }))), "{refused:?}");
        }
        let edit = two.update_state(thread, StoryUpdate::new(), "a").await;
        assert!(matches!(edit, Err(Error::Store(StoreError::Busy { .. }))));
        gate.open();
    })
    .await;
    let outcome = outcome.unwrap();
    assert!(is_done(&outcome));
    assert_eq!(lines(&outcome.state), ["input", "first"], "each run has its own request");
    assert_eq!([&first, &second].map(Arc::strong_count), [1, 1], "and drops it at its end");
    assert_eq!(on.store.runs(thread).await.unwrap().len(), 1, "the refused ones left no trace");
    let late = two.resume(thread, RunOptions::default()).await;
    assert!(matches!(late, Err(Error::Finished { .. })), "a duplicate resume finds nothing to do");
}

async fn a_run_that_was_dropped_frees_its_thread_at_once(on: &Fixture) {
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
    let graph = graph(|graph| graph.node("a", slow).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    crash_at(&gate, runner.start(thread, input(), RunOptions::default())).await;
    let info = on.store.info(thread).await.unwrap();
    assert!(info.lease_until.is_some(), "nobody gave it back");
    gate.open();
    assert!(is_done(&resume(&runner, thread).await));
}

/// A stale writer changes nothing; a call that it had not sent yet is never sent.
async fn a_runner_that_lost_its_thread_commits_no_step_and_sends_no_call(on: &Fixture) {
    let world = World::default();
    let gate = Gate::closed();
    let caller = {
        let world = world.clone();
        let gate = gate.clone();
        node_fn(move |ctx: Context<Story>| {
            let world = world.clone();
            let gate = gate.clone();
            async move {
                gate.pass().await;
                world.call_tool(&ctx, false, || Ok(json!("written"))).await?;
                Ok(say("called"))
            }
        })
    };
    let graph = graph(|graph| graph.node("a", caller).entry("a"));
    let stale = runner(&graph, &on.store);
    let fresh = runner(&graph, &on.another().await);
    let thread = world.thread(&stale).await;
    let (lost, ()) =
        futures::future::join(stale.start(thread, input(), RunOptions::default()), async {
            gate.reached().await;
            let ttl = Duration::ZERO;
            on.store.claim(Claim::new(thread, "elsewhere/boot/1/1", ttl).forced()).await.unwrap();
            gate.open();
        })
        .await;
    assert!(matches!(lost, Err(Error::Store(StoreError::Fenced { .. }))), "{lost:?}");
    assert!(world.seen().is_empty(), "the intent was refused, so nothing was sent");
    let info = on.store.info(thread).await.unwrap();
    assert_eq!((info.head, info.status), (1, ThreadStatus::Busy), "the new holder's, untouched");
    assert_eq!(lines(&resume(&fresh, thread).await.state), ["input", "called"]);
    assert_eq!(world.seen().len(), 1);
    let runs = on.store.runs(thread).await.unwrap();
    assert_eq!(runs.last().unwrap().status, RunStatus::Done);
}

async fn unreadable_threads_are_not_claimed(on: &Fixture) {
    perihelion_engine::graph_state! {
        pub struct Newer, update NewerUpdate, version 2 { lines: Vec<String> => append }
    }
    let newer = perihelion_engine::graph::GraphBuilder::<Newer>::new("story")
        .node(
            "a",
            node_fn(|_| async {
                Ok(perihelion_engine::graph::NodeOutput::update(NewerUpdate::new()))
            }),
        )
        .entry("a")
        .build()
        .unwrap();
    let newer = perihelion_engine::runner::Runner::new(newer, on.store.clone());
    let thread = perihelion_engine::ids::ThreadId::new();
    newer.create(thread, None).await.unwrap();
    newer.start(thread, NewerUpdate::new(), RunOptions::default()).await.unwrap();
    let before = on.store.info(thread).await.unwrap();
    let world = World::default();
    let older = runner(&graph(|graph| graph.node("a", world.speaker("a")).entry("a")), &on.store);
    let refused = older.start(thread, input(), RunOptions::default()).await.unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("state schema 2, this version knows 1; upgrade"), "{text}");
    assert_eq!(on.store.info(thread).await.unwrap(), before);
}

/// A holder that ends its run between the heir's look at the thread and its claim has lost nothing.
#[test]
fn a_run_that_ends_while_another_process_claims_its_thread_is_no_lost_one() {
    const HOLDER: &str = "the holder";
    const HEIR: &str = "the heir";
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let graph = graph(|graph| graph.node("a", World::default().speaker("a")).entry("a"));
    let thread = ThreadId::new();
    let (at_end, ending) = mpsc::channel();
    let (at_claim, claiming) = mpsc::channel();
    let (gone, ended) = mpsc::channel();
    let holder = Mutex::new((at_end, claiming, gone));
    let heir = Mutex::new((at_claim, ended));
    // The heir has read the thread, which is busy; only then the holder ends, and only then the heir claims.
    at_points(move |point, side| match (thread::current().name(), point, side) {
        (Some(HOLDER), Point::RunEnd, Side::Before) => {
            let (at_end, claiming, _) = &*holder.lock().unwrap();
            at_end.send(()).unwrap();
            claiming.recv().unwrap();
        }
        (Some(HOLDER), Point::RunEnd, Side::After) => holder.lock().unwrap().2.send(()).unwrap(),
        (Some(HEIR), Point::Claim, Side::Before) => {
            let (at_claim, ended) = &*heir.lock().unwrap();
            at_claim.send(()).unwrap();
            ended.recv().unwrap();
        }
        _ => {}
    });
    let runner = runner(&graph, &store);
    thread::scope(|scope| {
        let on_thread = |name: &str| thread::Builder::new().name(name.to_owned());
        let one = || block_on(start(&runner, thread));
        let one = on_thread(HOLDER).spawn_scoped(scope, one).unwrap();
        ending.recv().unwrap();
        let two = || block_on(runner.resume(thread, RunOptions::default()));
        let two = on_thread(HEIR).spawn_scoped(scope, two).unwrap();
        assert!(is_done(&one.join().unwrap()));
        let two = two.join().unwrap().unwrap();
        assert!(is_done(&two) && lines(&two.state) == ["input", "a"], "{:?}", two.state);
    });
    let info = block_on(store.info(thread)).unwrap();
    assert_eq!((info.status, info.error), (ThreadStatus::Idle, None));
    let again = block_on(runner.resume(thread, RunOptions::default()));
    assert!(matches!(again, Err(Error::Finished { .. })), "{again:?}");
}

/// What the holder wrote at the end of its run is what the thread is, even if another process looked at it in between.
#[test]
fn a_start_that_comes_after_the_end_of_a_run_leaves_the_thread_as_it_is() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let world = World::default();
    let runner = runner(&graph(|graph| graph.node("a", world.speaker("a")).entry("a")), &store);
    let next: Arc<Mutex<Option<(Fence, RunId, RunEnd<'static>)>>> = Arc::default();
    let ends = (Arc::clone(&next), Arc::clone(&store));
    let me = thread::current().id();
    at_points(move |point, side| {
        if (thread::current().id(), point, side) == (me, Point::Claim, Side::Before)
            && let Some((fence, run, end)) = ends.0.lock().unwrap().take()
        {
            ends.1.end_run(fence, run, end).now_or_never().unwrap().unwrap();
        }
    });
    let failed = RunEnd {
        error: Some("out of ink"),
        ..RunEnd::new(RunStatus::Failed, ThreadStatus::Failed)
    };
    for end in [
        RunEnd::new(RunStatus::Queued, ThreadStatus::Queued),
        failed,
        RunEnd::new(RunStatus::Interrupted, ThreadStatus::Interrupted),
    ] {
        block_on(async {
            let thread = ThreadId::new();
            runner.submit(thread, input()).await.unwrap();
            let claim = Claim::new(thread, "elsewhere/boot/1/1", Duration::from_secs(60));
            let fence = Fence::from(&store.claim(claim).await.unwrap());
            let run = RunId::new();
            store.begin_run(fence, run, false).await.unwrap();
            *next.lock().unwrap() = Some((fence, run, end));
            let refused = runner.start(thread, input(), RunOptions::default()).await.unwrap_err();
            assert!(next.lock().unwrap().is_none(), "the holder ended before the claim");
            let status = end.thread.as_str();
            let is_named =
                |error| matches!(error, Error::Unfinished { status: it, .. } if it == status);
            assert!(is_named(refused), "{status}");
            let info = store.info(thread).await.unwrap();
            assert_eq!((info.status, info.error.as_deref()), (end.thread, end.error));
            let woken = runner.wake(thread, RunOptions::default()).await.unwrap();
            let is_continued = woken.is_some_and(|outcome| is_done(&outcome));
            assert_eq!(is_continued, end.thread == ThreadStatus::Queued, "{status}");
        });
    }
}

#[test]
fn an_edit_that_comes_too_late_does_not_pause_the_thread() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let world = World::default();
    let graph = graph(|graph| {
        let graph = graph.node("a", world.speaker("a")).node("b", world.speaker("b"));
        graph.entry("a").edge("a", "b")
    });
    let runner = runner(&graph, &store);
    let thread = ThreadId::new();
    block_on(start(&runner, thread));
    let edit = move |runner: Runner<Story>| async move {
        let update = StoryUpdate::new().lines(vec!["edited".into()]);
        runner.update_state_and_go(thread, Some(3), update, "a", AfterEdit::Routes).await
    };
    let first = Mutex::new(Some(runner.clone()));
    let me = thread::current().id();
    at_points(move |point, side| {
        if (thread::current().id(), point, side) == (me, Point::Claim, Side::Before) {
            let Some(runner) = first.lock().unwrap().take() else { return };
            thread::spawn(move || block_on(edit(runner)).unwrap()).join().unwrap();
        }
    });
    let late = block_on(edit(runner.clone()));
    assert!(matches!(late, Err(Error::Store(StoreError::Moved { .. }))), "{late:?}");
    let info = block_on(store.info(thread)).unwrap();
    assert_eq!((info.head, info.status), (4, ThreadStatus::Failed));
    assert!(info.error.unwrap().contains("resume"));
    assert_eq!(block_on(resume(&runner, thread)).state.last, "b");
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

/// Another process makes the thread between the look for it and its creation.
async fn of_two_first_runs_of_one_thread_the_second_receives_the_name_of_the_holder(on: &Fixture) {
    let world = World::default();
    let runner = runner(&graph(|graph| graph.node("a", world.speaker("a")).entry("a")), &on.store);
    let new = NewThread { graph: "story".to_owned(), ..new_thread() };
    let thread = new.id;
    outrun(on.url.as_deref().unwrap(), new);
    let refused = runner.start(thread, input(), RunOptions::default()).await;
    let Err(Error::Store(StoreError::Busy { owner, .. })) = refused else { panic!("{refused:?}") };
    assert_eq!((&*owner, world.seen().len()), ("elsewhere/boot/1/1", 0));
}
