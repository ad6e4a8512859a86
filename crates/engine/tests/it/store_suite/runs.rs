//! Runs of a thread.

use perihelion_engine::checkpoint::{Claim, Error, Fence};
use perihelion_engine::{
    checkpoint::{RunEnd, RunRow, RunStatus, ThreadStatus},
    ids::RunId,
};

use serde_json::json;

use super::{
    on_every_store_sealed_too,
    stores::Fixture,
    writer::{TTL, Writer, encoded},
};

on_every_store_sealed_too!(
    runs_are_numbered_from_one_and_listed_in_order,
    beginning_a_run_again_keeps_its_number,
    ending_a_run_that_never_began_still_gives_the_thread_back,
    an_end_that_is_sent_twice_preserves_events_in_between,
    a_claim_and_the_beginning_of_its_run_happen_together_or_not_at_all,
);

async fn runs_are_numbered_from_one_and_listed_in_order(on: &Fixture) {
    let mut writer = Writer::new(&on.store).await;
    let outcomes =
        [RunStatus::Done, RunStatus::Interrupted, RunStatus::Failed, RunStatus::Cancelled];
    let mut begun = Vec::new();
    for (number, outcome) in (1..).zip(outcomes) {
        writer = Writer::claim(&on.store, writer.thread).await;
        let thread = writer.thread;
        let fence = writer.fence;
        let run = writer.run;
        begun.push(on.store.begin_run(Fence::new(thread, fence), run, false).await.unwrap());
        assert_eq!(begun.last().unwrap().number, number);
        on.store
            .end_run(Fence::new(thread, fence), run, RunEnd::new(outcome, ThreadStatus::Idle))
            .await
            .unwrap();
    }
    let runs = on.store.runs(writer.thread).await.unwrap();
    assert_eq!(runs.iter().map(|run| run.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(runs.iter().map(|run| run.status).collect::<Vec<_>>(), outcomes);
    let started = |runs: &[RunRow]| runs.iter().map(|run| run.started_at).collect::<Vec<_>>();
    assert_eq!(started(&runs), started(&begun));
    assert!(runs.iter().all(|run| run.ended_at.unwrap() >= run.started_at));
}

async fn beginning_a_run_again_keeps_its_number(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    let thread = writer.thread;
    let fence = writer.fence;
    let run = writer.run;
    on.store.begin_run(Fence::new(thread, fence), run, false).await.unwrap();
    on.store
        .end_run(
            Fence::new(thread, fence),
            run,
            RunEnd::new(RunStatus::Interrupted, ThreadStatus::Interrupted),
        )
        .await
        .unwrap();
    let writer = Writer::claim(&on.store, thread).await;
    assert_eq!(
        on.store.begin_run(Fence::new(thread, writer.fence), run, false).await.unwrap().number,
        1
    );
    let runs = on.store.runs(thread).await.unwrap();
    assert_eq!((runs.len(), runs[0].status, runs[0].ended_at), (1, RunStatus::Running, None));
    assert_eq!(
        on.store
            .begin_run(Fence::new(thread, writer.fence), RunId::new(), false)
            .await
            .unwrap()
            .number,
        2
    );
}

async fn ending_a_run_that_never_began_still_gives_the_thread_back(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    on.store
        .end_run(
            Fence::new(writer.thread, writer.fence),
            RunId::new(),
            RunEnd::new(RunStatus::Done, ThreadStatus::Idle),
        )
        .await
        .unwrap();
    let info = on.store.info(writer.thread).await.unwrap();
    assert_eq!((info.status, info.owner), (ThreadStatus::Idle, None));
    assert!(on.store.runs(writer.thread).await.unwrap().is_empty());
}

async fn an_end_that_is_sent_twice_preserves_events_in_between(on: &Fixture) {
    let writer = Writer::with_steps(&on.store, 1).await;
    let thread = writer.thread;
    let fence = writer.fence;
    let run = writer.run;
    on.store.begin_run(Fence::new(thread, fence), run, false).await.unwrap();
    let (id, question) = writer.question(0);
    on.store
        .record_effects(Fence::new(thread, fence), std::slice::from_ref(&question))
        .await
        .unwrap();
    let end = RunEnd::new(RunStatus::Interrupted, ThreadStatus::Interrupted);
    on.store.end_run(Fence::new(thread, fence), run, end).await.unwrap();
    on.store.answer(id, &encoded(&json!("yes"))).await.unwrap();
    assert_eq!(on.store.info(thread).await.unwrap().status, ThreadStatus::Queued);

    on.store.end_run(Fence::new(thread, fence), run, end).await.unwrap();
    let info = on.store.info(thread).await.unwrap();
    assert_eq!(info.status, ThreadStatus::Queued, "the answer is not waited for in vain");
}

async fn a_claim_and_the_beginning_of_its_run_happen_together_or_not_at_all(on: &Fixture) {
    let writer = Writer::with_steps(&on.store, 1).await;
    let thread = writer.thread;
    let end = RunEnd::new(RunStatus::Done, ThreadStatus::Idle);
    on.store.end_run(Fence::new(thread, writer.fence), writer.run, end).await.unwrap();
    let before = on.store.runs(thread).await.unwrap().len();

    let claim = Claim::new(thread, "one", TTL);
    let begun = on.store.claim_and_begin(claim, true).await.unwrap();
    assert_eq!((begun.info.fence, begun.info.head), (writer.fence + 1, 1));
    assert_eq!((begun.info.status, begun.info.owner.as_deref()), (ThreadStatus::Busy, Some("one")));
    assert_eq!(begun.events, on.store.event_position(thread).await.unwrap());
    let millis = begun.info.updated_at.timestamp_millis();
    assert_eq!(begun.run.started_micros() / 1_000, millis, "dated by the store");
    let runs = on.store.runs(thread).await.unwrap();
    assert_eq!(runs.len(), before + 1);
    assert_eq!((runs[before].id, runs[before].status), (begun.run, RunStatus::Running));
    assert!(runs[before].started_at >= begun.info.updated_at, "{runs:?}");

    // A second claim under the same name is refused, and begins nothing.
    let refused = on.store.claim_and_begin(claim, true).await;
    assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
    assert_eq!(on.store.runs(thread).await.unwrap(), runs);
    let forced = on.store.claim_and_begin(claim.forced(), false).await.unwrap();
    assert_eq!(forced.info.fence, begun.info.fence + 1);
    let last = on.store.runs(thread).await.unwrap().pop().unwrap();
    assert_eq!((last.id, last.number), (forced.run, runs[before].number + 1));
    if let Some(outbox) = on.store.outbox() {
        let pending = outbox.pending_of(thread).await.unwrap().unwrap();
        assert_eq!(pending.to_run, runs[before].number, "only the first was to be exported");
    }
}
