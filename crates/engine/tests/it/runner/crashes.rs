//! A run that is broken off continues from what was kept (S1.03).

use std::time::Duration;

use perihelion_engine::checkpoint::{Claim, Fence, ThreadFilter, ThreadStatus};
use perihelion_engine::graph::{Outcome, node_fn};
use perihelion_engine::ids::RunId;
use perihelion_engine::runner::{Error, RunOptions, RunResult, Verdict, owner_name};

use super::world::*;
use crate::store_suite::{on_every_store, stores::Fixture};

const LEASE: Duration = Duration::from_secs(15);

on_every_store!(
    a_run_that_crashed_in_a_node_resumes_that_node,
    tasks_finished_before_the_crash_are_not_run_again,
    a_model_call_is_paid_once_whatever_crashes,
    time_and_chance_are_the_same_after_a_crash,
    a_crash_after_the_last_commit_leaves_no_task_to_run,
    an_unfinished_thread_takes_no_new_input_and_a_finished_one_no_resume,
    a_question_whose_process_died_before_it_was_stored_is_named_and_can_be_asked_again,
    an_idle_thread_whose_last_run_failed_counts_as_failed_in_lists_and_counts,
);

/// S1.03
async fn a_run_that_crashed_in_a_node_resumes_that_node(on: &Fixture) {
    let world = World::default();
    let gate = Gate::closed();
    let slow = {
        let world = world.clone();
        let gate = gate.clone();
        node_fn(move |_| {
            let world = world.clone();
            let gate = gate.clone();
            async move {
                world.note("slow");
                gate.pass().await;
                Ok(say("slow"))
            }
        })
    };
    let graph = graph(|graph| {
        graph
            .node("first", world.speaker("first"))
            .node("slow", slow)
            .entry("first")
            .edge("first", "slow")
    });
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    crash_at(&gate, runner.start(thread, input(), RunOptions::default())).await;
    assert_eq!(on.store.info(thread).await.unwrap().status, ThreadStatus::Busy);

    gate.open();
    let another = super::world::runner(&graph, &on.another().await);
    let outcome = resume(&another, thread).await;
    assert!(is_done(&outcome));
    assert_eq!(lines(&outcome.state), ["input", "first", "slow"]);
    assert_eq!(world.seen(), ["first", "slow", "slow"]);
    assert_eq!(on.store.info(thread).await.unwrap().status, ThreadStatus::Idle);
}

async fn tasks_finished_before_the_crash_are_not_run_again(on: &Fixture) {
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
        graph.node("slow", slow).node("fast", world.speaker("fast")).entry("slow").entry("fast")
    });
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let run = runner.start(thread, input(), RunOptions::default());
    // The gate is reached before the fast node ran; wait for its write to be kept.
    tokio::select! {
        _ = run => panic!(),
        () = async {
            gate.reached().await;
            while on.store.load(thread, None).await.unwrap().pending.is_empty() {
                tokio::task::yield_now().await;
            }
        } => {}
    }
    gate.open();
    let outcome = resume(&runner, thread).await;
    assert_eq!(lines(&outcome.state), ["input", "slow", "fast"], "in frontier order");
    assert_eq!(world.count("fast"), 1);
    assert!(on.store.load(thread, None).await.unwrap().pending.is_empty());
}

/// X2: what was recorded is read back, in the same process or another.
async fn a_model_call_is_paid_once_whatever_crashes(on: &Fixture) {
    let world = World::default();
    let gate = Gate::closed();
    let node = {
        let world = world.clone();
        let gate = gate.clone();
        node_fn(move |ctx| {
            let world = world.clone();
            let gate = gate.clone();
            async move {
                let mut text = Vec::new();
                for what in ["plan", "plan", "write"] {
                    match world.ask_model(&ctx, what).await? {
                        Outcome::Value(value) => text.push(value.as_str().unwrap().to_owned()),
                        Outcome::Failed(error) => panic!("{error}"),
                    }
                }
                gate.pass().await;
                Ok(say(text.join(", ")))
            }
        })
    };
    let graph = graph(|graph| graph.node("a", node).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    crash_at(&gate, runner.start(thread, input(), RunOptions::default())).await;
    crash_at(&gate, runner.resume(thread, RunOptions::default())).await;
    gate.open();
    let outcome = resume(&super::world::runner(&graph, &on.another().await), thread).await;
    assert_eq!(outcome.state.last, "plan #0, plan #1, write #0");
    assert_eq!(world.seen(), ["plan", "plan", "write"]);
    assert_eq!(on.store.effects(thread, None).await.unwrap().len(), 3);
}

async fn time_and_chance_are_the_same_after_a_crash(on: &Fixture) {
    let world = World::default();
    let gate = Gate::closed();
    let node = {
        let world = world.clone();
        let gate = gate.clone();
        node_fn(move |ctx| {
            let world = world.clone();
            let gate = gate.clone();
            async move {
                let drawn = (ctx.now().await?, ctx.random().await?, ctx.random().await?);
                assert_ne!(drawn.1, drawn.2);
                world.note(format!("{drawn:?}"));
                gate.pass().await;
                Ok(say("done"))
            }
        })
    };
    let graph = graph(|graph| graph.node("a", node).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    crash_at(&gate, runner.start(thread, input(), RunOptions::default())).await;
    gate.open();
    resume(&runner, thread).await;
    let seen = world.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0], seen[1]);
}

async fn a_crash_after_the_last_commit_leaves_no_task_to_run(on: &Fixture) {
    let world = World::default();
    let graph = graph(|graph| graph.node("a", world.speaker("a")).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let run = start(&runner, thread).await.run;
    // As if the process had ended between the last commit and giving the thread back.
    let taken = on.store.claim(Claim::new(thread, "elsewhere", Duration::ZERO)).await.unwrap();
    on.store.begin_run(Fence::new(thread, taken.fence), run, false).await.unwrap();
    let outcome = resume(&runner, thread).await;
    assert!(is_done(&outcome));
    assert_eq!((outcome.steps, world.count("a")), (0, 1));
}

async fn an_unfinished_thread_takes_no_new_input_and_a_finished_one_no_resume(on: &Fixture) {
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
    let graph = graph(|graph| graph.node("slow", slow).entry("slow"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let never = runner.resume(thread, RunOptions::default()).await;
    assert!(matches!(never, Err(Error::Finished { .. })), "{never:?}");
    crash_at(&gate, runner.start(thread, input(), RunOptions::default())).await;
    for _ in 0..2 {
        let refused = runner.start(thread, input(), RunOptions::default()).await;
        assert!(matches!(refused, Err(Error::Unfinished { .. })), "{refused:?}");
    }
    gate.open();
    resume(&runner, thread).await;
    let again = runner.resume(thread, RunOptions::default()).await;
    assert!(matches!(again, Err(Error::Finished { .. })), "{again:?}");
    let next = start(&runner, thread).await;
    assert_eq!(lines(&next.state), ["input", "slow", "input", "slow"]);
}

/// X5: killed between the claim and the input, on a new thread and on one that had a turn before.
async fn a_question_whose_process_died_before_it_was_stored_is_named_and_can_be_asked_again(
    on: &Fixture,
) {
    let world = World::default();
    let graph = graph(|graph| graph.node("a", world.speaker("a")).entry("a"));
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    let me = owner_name();
    let (rest, _) = me.rsplit_once('/').unwrap();
    let dead = format!("{rest}/1");
    for (turn, begins) in [(0, true), (1, true), (2, false)] {
        let taken = on.store.claim(Claim::new(thread, &dead, LEASE)).await.unwrap();
        if begins {
            on.store.begin_run(Fence::new(thread, taken.fence), RunId::new(), false).await.unwrap();
        }
        if turn == 1 {
            let woken = runner.wake(thread, RunOptions::default()).await.unwrap();
            assert!(woken.is_none(), "there is nothing to continue with");
        }
        let refused = runner.resume(thread, RunOptions::default()).await.unwrap_err();
        assert!(matches!(refused, Error::NeverAsked { .. }), "{refused}");
        assert!(refused.to_string().contains("never stored"), "{refused}");
        assert!(refused.to_string().contains("perihelion run --thread"), "{refused}");
        let info = on.store.info(thread).await.unwrap();
        assert_eq!((info.status, info.owner.as_ref()), (ThreadStatus::Idle, None));
        // Of a thread that had a turn nothing is taken back.
        let error = (turn == 0).then(|| refused.to_string());
        assert_eq!(info.error, error);
        let again = runner.resume(thread, RunOptions::default()).await.unwrap_err();
        assert!(matches!(again, Error::NeverAsked { .. }), "{again}");
        assert!(is_done(&start(&runner, thread).await));
        assert_eq!(world.count("a"), turn + 1);
        assert_eq!(on.store.info(thread).await.unwrap().overall_status(), ThreadStatus::Idle);
    }
}

/// X5
async fn an_idle_thread_whose_last_run_failed_counts_as_failed_in_lists_and_counts(on: &Fixture) {
    let world = World::default();
    let graph = graph(|graph| graph.node("a", world.speaker("a")).entry("a"));
    let judged = |_: &RunResult, _: &Story| Verdict {
        failure: Some("nothing worked".to_owned()),
        finish_reason: None,
    };
    let mut failing = runner(&graph, &on.store);
    failing.judge = Some(judged);
    let thread = world.thread(&failing).await;
    assert!(is_done(&start(&failing, thread).await));
    let info = on.store.info(thread).await.unwrap();
    assert_eq!((info.status, info.error.as_deref()), (ThreadStatus::Idle, Some("nothing worked")));
    let listed = async |status| {
        let filter = ThreadFilter { status: Some(status), ..ThreadFilter::default() };
        on.store.list(&filter).await.unwrap().iter().filter(|one| one.id == thread).count()
    };
    let counted = async |status| {
        let counts = on.store.count_threads().await.unwrap();
        counts.iter().find(|(one, _)| *one == status).map_or(0, |(_, count)| *count)
    };
    assert_eq!((listed(ThreadStatus::Failed).await, listed(ThreadStatus::Idle).await), (1, 0));
    assert!(counted(ThreadStatus::Failed).await >= 1);
    // A further turn that succeeds puts it right.
    assert!(is_done(&start(&runner(&graph, &on.store), thread).await));
    assert_eq!((listed(ThreadStatus::Failed).await, listed(ThreadStatus::Idle).await), (0, 1));
    // Threads of other tests come and go in the same database, so both are asked until nothing came between.
    let started = perihelion_engine::clock::monotonic();
    let failed = ThreadFilter { status: Some(ThreadStatus::Failed), ..ThreadFilter::default() };
    while on.store.list(&failed).await.unwrap().len() as u64 != counted(ThreadStatus::Failed).await
    {
        assert!(started.elapsed() < std::time::Duration::from_secs(60), "count and list differ");
    }
}
