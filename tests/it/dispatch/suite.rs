//! What both dispatchers promise: embedded, where the threads' status is the queue, and Postgres.

use std::sync::Arc;
use std::time::Duration;

use perihelion::checkpoint::{
    self, Claim, Fence, RunStatus, Store, ThreadStatus, Waiting, WorkFilter,
};
use perihelion::dispatch::{self, Dispatcher, Scope, Wake};
use perihelion::graph::{Context, node_fn};
use perihelion::ids::ThreadId;
use perihelion::runner::{Error, RunOptions, RunResult, Runner, owner_name};
use perihelion_test_database::TestDatabase;
use serde_json::json;
use tempfile::TempDir;

use crate::runner::world::*;
use crate::support::postgres::server;

/// A store that no other test uses.
pub struct Place {
    pub store: Arc<dyn Store>,
    pub url: String,
    _directory: Option<TempDir>,
    _database: Option<TestDatabase>,
}

async fn memory() -> Place {
    let url = "memory:".to_owned();
    let store = checkpoint::open("memory:").await.unwrap();
    Place { store, url, _directory: None, _database: None }
}

async fn sqlite() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("threads.db").display());
    let store = checkpoint::open(&url).await.unwrap();
    Place { store, url, _directory: Some(directory), _database: None }
}

pub async fn postgres() -> Place {
    let database = server().await.fresh().await;
    let url = database.url.clone();
    let store = checkpoint::open(&database.url).await.unwrap();
    Place { store, url, _directory: None, _database: Some(database) }
}

impl Place {
    pub fn dispatcher(&self) -> Arc<Dispatcher> {
        let except_tenant = Some("demo".to_owned());
        let scope = Scope { graphs: vec!["story".to_owned()], except_tenant, thorough: true };
        dispatch::open(&self.url, Arc::clone(&self.store), scope).unwrap()
    }

    async fn status(&self, thread: ThreadId) -> ThreadStatus {
        self.store.info(thread).await.unwrap().status
    }
}

macro_rules! on_every_dispatcher {
    ($($name:ident),+ $(,)?) => {
        on_every_dispatcher!(@ memory: $($name),+);
        on_every_dispatcher!(@ sqlite: $($name),+);
        on_every_dispatcher!(@ postgres: $($name),+);
    };
    (@ $store:ident: $($name:ident),+) => {
        mod $store {
            $(
                #[tokio::test]
                async fn $name() {
                    let place = super::$store().await;
                    super::$name(&place).await;
                    place.store.close().await;
                }
            )+
        }
    };
}

on_every_dispatcher!(
    a_submitted_run_is_finished_by_the_one_who_is_called_to_it,
    of_many_that_are_called_to_one_thread_one_continues_with_it,
    an_answer_queues_its_thread_also_while_it_is_busy,
    a_thread_at_rest_calls_nobody,
    a_thread_is_found_when_its_lease_has_run_out_or_its_holder_is_dead,
    a_thread_whose_runs_all_die_is_left_to_people,
    a_run_that_is_stopped_can_be_handed_over,
    a_submission_that_is_refused_calls_nobody,
    the_demos_threads_are_left_alone,
    a_thread_is_found_behind_any_number_that_others_hold,
    a_thread_that_was_left_alone_for_a_while_is_found_again,
);

pub fn speaking(world: &World) -> Arc<perihelion::graph::Graph<Story>> {
    graph(|graph| graph.node("a", world.speaker("a")).entry("a"))
}

fn asking() -> Arc<perihelion::graph::Graph<Story>> {
    graph(|graph| {
        let ask = node_fn(|ctx: Context<Story>| async move {
            let answer = ctx.interrupt("clarification", json!({ "question": "which?" })).await?;
            Ok(say(answer.as_str().unwrap_or("?")))
        });
        graph.node("a", ask).entry("a")
    })
}

/// Takes every call there is, so that the next one tells of something new.
pub async fn calls(dispatcher: &Arc<Dispatcher>) -> Vec<Wake> {
    let mut calls = Vec::new();
    while let Some(wake) = dispatcher.next().await.unwrap() {
        calls.push(wake);
    }
    calls
}

fn threads(calls: &[Wake]) -> Vec<ThreadId> {
    calls.iter().map(|wake| wake.thread).collect()
}

pub async fn wake(runner: &Runner<Story>, thread: ThreadId) -> Option<RunResult> {
    let woken = runner.wake(thread, RunOptions::default()).await.unwrap();
    woken.map(|outcome| outcome.result)
}

/// X4
async fn a_submitted_run_is_finished_by_the_one_who_is_called_to_it(on: &Place) {
    let world = World::default();
    let runner = runner(&speaking(&world), &on.store);
    let dispatcher = on.dispatcher();
    assert!(calls(&dispatcher).await.is_empty());
    let thread = world.thread(&runner).await;
    let run = runner.submit(thread, input()).await.unwrap();
    assert_eq!((on.status(thread).await, world.count("a")), (ThreadStatus::Queued, 0));
    let refused = runner.start(thread, input(), RunOptions::default()).await;
    assert!(matches!(refused, Err(Error::Unfinished { status: "queued", .. })), "{refused:?}");

    let called = calls(&dispatcher).await;
    assert_eq!(threads(&called), [thread]);
    assert_eq!(wake(&runner, thread).await, Some(RunResult::Done));
    assert_eq!((on.status(thread).await, world.count("a")), (ThreadStatus::Idle, 1));
    let runs = on.store.runs(thread).await.unwrap();
    let reported: Vec<_> = runs.iter().map(|run| (run.number, run.status)).collect();
    assert_eq!(reported, [(1, RunStatus::Queued), (2, RunStatus::Done)]);
    assert_eq!(runs[0].id, run);
    drop(called);
    assert!(calls(&dispatcher).await.is_empty());
    dispatcher.close().await;
}

async fn of_many_that_are_called_to_one_thread_one_continues_with_it(on: &Place) {
    let world = World::default();
    let graph = speaking(&world);
    let runners: Vec<_> = (0..4).map(|_| runner(&graph, &on.store)).collect();
    for _ in 0..20 {
        let thread = world.thread(&runners[0]).await;
        runners[0].submit(thread, input()).await.unwrap();
        let woken = runners.iter().map(|runner| wake(runner, thread));
        let woken = futures::future::join_all(woken).await;
        assert_eq!(woken.iter().flatten().count(), 1, "{woken:?}");
        assert_eq!(on.store.runs(thread).await.unwrap().len(), 2);
    }
    assert_eq!(world.count("a"), 20);
}

async fn an_answer_queues_its_thread_also_while_it_is_busy(on: &Place) {
    let world = World::default();
    let runner = runner(&asking(), &on.store);
    let dispatcher = on.dispatcher();
    let thread = world.thread(&runner).await;
    let asked = interrupts(&start(&runner, thread).await)[0].id;
    assert!(calls(&dispatcher).await.is_empty(), "it waits for a person and for nobody else");
    runner.answer(thread, asked, &json!("this")).await.unwrap();
    assert_eq!(on.status(thread).await, ThreadStatus::Queued);
    assert_eq!(threads(&calls(&dispatcher).await), [thread]);
    assert_eq!(wake(&runner, thread).await, Some(RunResult::Done));

    // Two questions; the second one is answered while the first one's answer is worked on.
    let gate = Gate::closed();
    let gate_of_node = gate.clone();
    let graph = graph(|graph| {
        let slow = node_fn(move |ctx: Context<Story>| {
            let gate = gate_of_node.clone();
            async move {
                let answer = ctx.interrupt("clarification", json!({ "from": "slow" })).await?;
                gate.pass().await;
                Ok(say(answer.as_str().unwrap_or("?")))
            }
        });
        let ask = node_fn(|ctx: Context<Story>| async move {
            let answer = ctx.interrupt("clarification", json!({ "from": "quick" })).await?;
            Ok(say(answer.as_str().unwrap_or("?")))
        });
        graph.node("slow", slow).node("quick", ask).entry("slow").entry("quick")
    });
    let runner = self::runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let outcome = start(&runner, thread).await;
    let [slow, quick] = interrupts(&outcome) else { panic!() };
    runner.answer(thread, slow.id, &json!("S")).await.unwrap();
    let (woken, ()) = futures::future::join(wake(&runner, thread), async {
        gate.reached().await;
        runner.answer(thread, quick.id, &json!("Q")).await.unwrap();
        assert_eq!(on.status(thread).await, ThreadStatus::Busy);
        gate.open();
    })
    .await;
    assert!(matches!(woken, Some(RunResult::Interrupted(_))), "{woken:?}");
    assert_eq!(on.status(thread).await, ThreadStatus::Queued, "the answer was not in vain");
    assert_eq!(threads(&calls(&dispatcher).await), [thread]);
    assert_eq!(wake(&runner, thread).await, Some(RunResult::Done));
    dispatcher.close().await;
}

async fn a_thread_at_rest_calls_nobody(on: &Place) {
    let world = World::default();
    let failing = graph(|graph| {
        let fail = node_fn(|_| async { Err(perihelion::graph::NodeError::failed("x", "no")) });
        graph.node("a", fail).entry("a")
    });
    let [done, waiting, failed] =
        [speaking(&world), asking(), failing].map(|graph| runner(&graph, &on.store));
    for runner in [&done, &waiting, &failed] {
        let thread = world.thread(runner).await;
        start(runner, thread).await;
        let status = on.status(thread).await;
        let runs = on.store.runs(thread).await.unwrap();
        assert_eq!(wake(runner, thread).await, None, "{status:?}");
        assert_eq!((on.status(thread).await, on.store.runs(thread).await.unwrap()), (status, runs));
    }
    assert!(calls(&on.dispatcher()).await.is_empty());
}

async fn a_thread_is_found_when_its_lease_has_run_out_or_its_holder_is_dead(on: &Place) {
    let world = World::default();
    let gate = Gate::closed();
    let gate_of_node = gate.clone();
    let graph = graph(|graph| {
        let slow = node_fn(move |_| {
            let gate = gate_of_node.clone();
            async move {
                gate.pass().await;
                Ok(say("slow"))
            }
        });
        graph.node("a", slow).entry("a")
    });
    let runner = runner(&graph, &on.store);
    let dispatcher = on.dispatcher();
    let thread = world.thread(&runner).await;
    let run = runner.start(thread, input(), RunOptions::default());
    crash_at(&gate, async {
        tokio::pin!(run);
        tokio::select! {
            _ = &mut run => {}
            () = async {
                while on.store.info(thread).await.unwrap().head == 0 {
                    tokio::task::yield_now().await;
                }
                assert!(calls(&dispatcher).await.is_empty(), "its holder lives");
            } => { run.await.unwrap(); }
        }
    })
    .await;
    // The run was dropped: its hold is dead, which this process knows.
    assert_eq!(threads(&calls(&dispatcher).await), [thread]);
    gate.open();
    assert_eq!(wake(&runner, thread).await, Some(RunResult::Done));

    // Elsewhere nobody knows who lives: there the lease decides, in the database's time.
    let thread = world.thread(&runner).await;
    let elsewhere = "elsewhere/boot+pid/1/1/1";
    let ttl = Duration::from_secs(3600);
    let info = on.store.claim(Claim::new(thread, elsewhere, ttl)).await.unwrap();
    assert!(calls(&dispatcher).await.is_empty());
    assert_eq!(wake(&runner, thread).await, None);
    let wanted = WorkFilter {
        graph: "story".to_owned(),
        except_tenant: None,
        machine: "/boot+pid/".to_owned(),
        queued_for: Duration::ZERO,
        limit: 10,
        skip: 0,
    };
    let seen = on.store.waiting(&wanted).await.unwrap();
    assert_eq!(seen, [Waiting { thread, holder: Some(elsewhere.to_owned()) }]);
    on.store.renew(Fence::new(thread, info.fence), Duration::ZERO).await.unwrap();
    assert_eq!(threads(&calls(&dispatcher).await), [thread]);
    assert_eq!(wake(&runner, thread).await, None, "its question was never stored");
    assert_eq!(on.status(thread).await, ThreadStatus::Idle);
    dispatcher.close().await;
}

async fn a_thread_whose_runs_all_die_is_left_to_people(on: &Place) {
    let world = World::default();
    let deadly = Gate::closed();
    let gate_of_node = deadly.clone();
    let graph = graph(|graph| {
        let slow = node_fn(move |_| {
            let gate = gate_of_node.clone();
            async move {
                gate.pass().await;
                Ok(say("slow"))
            }
        });
        graph.node("a", world.speaker("a")).node("b", slow).entry("a").edge("a", "b")
    });
    let runner = runner(&graph, &on.store);
    let dispatcher = on.dispatcher();
    let thread = world.thread(&runner).await;
    runner.submit(thread, input()).await.unwrap();
    let options = || RunOptions { max_crashes: Some(3), ..RunOptions::default() };
    // The first of them commits a step, so it does not count.
    for _ in 0..4 {
        assert_eq!(threads(&calls(&dispatcher).await), [thread]);
        crash_at(&deadly, runner.wake(thread, options())).await;
    }
    assert_eq!(threads(&calls(&dispatcher).await), [thread]);
    let refused = runner.wake(thread, options()).await;
    assert!(matches!(refused, Err(Error::CrashLoop { crashes: 3, .. })), "{refused:?}");
    let info = on.store.info(thread).await.unwrap();
    assert_eq!(info.status, ThreadStatus::Failed);
    assert!(info.error.unwrap().contains("perihelion resume"), "it says what to do");
    assert!(calls(&dispatcher).await.is_empty());

    deadly.open();
    let resumed = runner.resume(thread, RunOptions::default()).await.unwrap();
    assert_eq!((resumed.result, world.count("a")), (RunResult::Done, 1));
    dispatcher.close().await;
}

async fn a_run_that_is_stopped_can_be_handed_over(on: &Place) {
    let world = World::default();
    let gate = Gate::closed();
    let gate_of_node = gate.clone();
    let graph = graph(|graph| {
        let slow = node_fn(move |_| {
            let gate = gate_of_node.clone();
            async move {
                gate.pass().await;
                Ok(say("slow"))
            }
        });
        graph.node("a", slow).node("b", world.speaker("b")).entry("a").edge("a", "b")
    });
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    runner.submit(thread, input()).await.unwrap();
    let options = RunOptions { hands_over: true, ..RunOptions::default() };
    let cancel = options.cancel.clone();
    let (woken, ()) = futures::future::join(runner.wake(thread, options), async {
        gate.reached().await;
        cancel.cancel();
        gate.open();
    })
    .await;
    let outcome = woken.unwrap().unwrap();
    assert_eq!(outcome.result, RunResult::Queued);
    assert_eq!(on.status(thread).await, ThreadStatus::Queued);
    let dispatcher = on.dispatcher();
    assert_eq!(threads(&calls(&dispatcher).await), [thread]);
    assert_eq!(wake(&runner, thread).await, Some(RunResult::Done));
    assert_eq!(world.count("b"), 1);
    dispatcher.close().await;
}

async fn a_submission_that_is_refused_calls_nobody(on: &Place) {
    let world = World::default();
    let runner = runner(&asking(), &on.store);
    let dispatcher = on.dispatcher();
    let thread = world.thread(&runner).await;
    start(&runner, thread).await;
    let refused = runner.submit(thread, input()).await;
    assert!(matches!(refused, Err(Error::Unfinished { .. })), "{refused:?}");
    assert!(calls(&dispatcher).await.is_empty());
    assert_eq!(on.status(thread).await, ThreadStatus::Interrupted);
    dispatcher.close().await;
}

async fn the_demos_threads_are_left_alone(on: &Place) {
    let world = World::default();
    let mut runner = runner(&speaking(&world), &on.store);
    runner.tenant = "demo".into();
    let thread = world.thread(&runner).await;
    let other = graph_named("another", &world);
    let other = Runner::new(other, Arc::clone(&on.store));
    let foreign = world.thread(&other).await;
    // Looked for before anybody is called, so that only looking can find them.
    runner.submit(thread, input()).await.unwrap();
    other.submit(foreign, input()).await.unwrap();
    assert!(calls(&on.dispatcher()).await.is_empty());
    let wrong = runner.wake(foreign, RunOptions::default()).await;
    assert!(matches!(wrong, Err(Error::WrongGraph { .. })), "{wrong:?}");
}

pub fn graph_named(name: &str, world: &World) -> Arc<perihelion::graph::Graph<Story>> {
    let builder = perihelion::graph::GraphBuilder::new(name);
    builder.node("a", world.speaker("a")).entry("a").build().unwrap()
}

/// The index that workers look through must not cost a commit anything.
#[tokio::test]
async fn a_commit_on_postgres_still_moves_the_head_within_its_page() {
    let database = server().await.fresh().await;
    let store = Arc::new(checkpoint::PostgresStore::open(&database.url).await.unwrap());
    let as_store: Arc<dyn Store> = Arc::clone(&store) as _;
    let commits = 300;
    let mut writer = crate::store_suite::writer::Writer::new(&as_store).await;
    writer.steps(commits).await;
    let flushed = store.with_connection(async |connection| {
        sqlx::raw_sql("SELECT pg_stat_force_next_flush()").execute(connection).await
    });
    flushed.await.unwrap();
    let (all, within): (i64, i64) = store
        .with_connection(async |connection| {
            sqlx::query_as(
                "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'thread'",
            )
            .fetch_one(connection)
            .await
        })
        .await
        .unwrap();
    // The claim is in the index and may leave the page; a commit is not.
    assert!(all >= commits as i64 && within >= all - 2, "{within} of {all} updates were HOT");
}

async fn a_thread_is_found_behind_any_number_that_others_hold(on: &Place) {
    let world = World::default();
    let graph = asking();
    let runner = runner(&graph, &on.store);
    // Held by a process of this very machine that lives, and for longer than the last one waits.
    for _ in 0..600 {
        let gate_of_node = world.thread(&runner).await;
        on.store
            .claim(Claim::new(gate_of_node, &owner_name(), Duration::from_secs(3600)))
            .await
            .unwrap();
    }
    let dispatcher = on.dispatcher();
    assert!(calls(&dispatcher).await.is_empty());
    let thread = world.thread(&runner).await;
    runner.submit(thread, input()).await.unwrap();
    assert_eq!(threads(&calls(&dispatcher).await), [thread]);
    dispatcher.close().await;
}

async fn a_thread_that_was_left_alone_for_a_while_is_found_again(on: &Place) {
    let world = World::default();
    let graph = asking();
    let runner = runner(&graph, &on.store);
    let dispatcher = on.dispatcher();
    let [one, other] = [world.thread(&runner).await, world.thread(&runner).await];
    for thread in [one, other] {
        runner.submit(thread, input()).await.unwrap();
    }
    for wake in calls(&dispatcher).await {
        let pause = if wake.thread == one { Duration::ZERO } else { Duration::from_secs(3600) };
        dispatcher.set_aside(&wake, pause);
    }
    assert_eq!(threads(&calls(&dispatcher).await), [one]);
    dispatcher.close().await;
}
