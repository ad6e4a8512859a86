//! Committing steps, in order and whole.

use perihelion_engine::checkpoint::Fence;
use perihelion_engine::{
    checkpoint::{Error, ThreadStatus},
    ids::ThreadId,
};
use serde_json::json;

use super::{
    on_durable_stores, on_every_store_sealed_too,
    stores::Fixture,
    writer::{Writer, encoded},
};

on_every_store_sealed_too!(
    a_committed_step_reads_back_byte_for_byte,
    the_head_and_the_status_move_with_the_step,
    a_step_that_does_not_follow_the_head_is_refused_without_a_write,
    an_absurd_step_number_is_a_conflict,
    a_step_for_an_unknown_thread_is_refused,
    threads_do_not_see_steps_of_other_threads,
);
on_durable_stores!(
    an_acknowledged_step_is_seen_through_another_connection,
    reopening_finds_everything
);

async fn a_committed_step_reads_back_byte_for_byte(on: &Fixture) {
    let mut writer = Writer::new(&on.store).await;
    let commit =
        writer.next(encoded(&json!([{"node": "a", "update": {"plan": ["ä", "\u{0}", "😀"]}}])));
    writer.commit(&commit).await.unwrap();
    let mut steps = on.store.load(writer.thread, None).await.unwrap().steps;
    let mut found = steps.remove(0);
    assert!(found.at > commit.step.at, "the store sets the time");
    found.at = commit.step.at;
    assert_eq!(found, commit.step);
    assert!(steps.is_empty());
}

async fn the_head_and_the_status_move_with_the_step(on: &Fixture) {
    let mut writer = Writer::with_steps(&on.store, 2).await;
    let mut commit = writer.next(encoded(&json!([])));
    commit.status = ThreadStatus::Interrupted;
    writer.commit(&commit).await.unwrap();
    let info = on.store.info(writer.thread).await.unwrap();
    assert_eq!((info.head, info.status), (3, ThreadStatus::Interrupted));
    assert!(info.updated_at >= info.created_at);
}

async fn a_step_that_does_not_follow_the_head_is_refused_without_a_write(on: &Fixture) {
    let mut writer = Writer::with_steps(&on.store, 3).await;
    writer.head = 1;
    let second_again = writer.next(encoded(&json!([])));
    writer.head = 4;
    let too_early = writer.next(encoded(&json!([])));
    for (commit, seq) in [(second_again, 2), (too_early, 5)] {
        match on.store.commit(&commit).await {
            Err(Error::Conflict { head: 3, seq: found, .. }) => assert_eq!(found, seq),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(on.store.load(writer.thread, None).await.unwrap().steps.len(), 3);
    assert_eq!(on.store.info(writer.thread).await.unwrap().head, 3);
}

async fn an_absurd_step_number_is_a_conflict(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    for seq in [0, u64::MAX / 2 + 1, u64::MAX] {
        let mut commit = writer.next(encoded(&json!([])));
        commit.step.seq = seq;
        let refused = on.store.commit(&commit).await;
        assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
    }
}

async fn a_step_for_an_unknown_thread_is_refused(on: &Fixture) {
    let mut writer = Writer::new(&on.store).await;
    writer.thread = ThreadId::new();
    let refused = on.store.commit(&writer.next(encoded(&json!([])))).await;
    assert!(matches!(refused, Err(Error::UnknownThread(id)) if id == writer.thread));
}

async fn threads_do_not_see_steps_of_other_threads(on: &Fixture) {
    let one = Writer::with_steps(&on.store, 2).await;
    let other = Writer::with_steps(&on.store, 3).await;
    assert_eq!(on.store.load(one.thread, None).await.unwrap().steps.len(), 2);
    assert_eq!(on.store.load(other.thread, None).await.unwrap().steps.len(), 3);
}

async fn an_acknowledged_step_is_seen_through_another_connection(on: &Fixture) {
    let mut writer = Writer::new(&on.store).await;
    let other = on.another().await;
    for seq in 1..=5 {
        writer.steps(1).await;
        assert_eq!(other.info(writer.thread).await.unwrap().head, seq);
        assert_eq!(other.load(writer.thread, None).await.unwrap().steps.len(), seq as usize);
    }
    other.close().await;
}

/// S1.03
async fn reopening_finds_everything(on: &Fixture) {
    let mut writer = Writer::with_steps(&on.store, 4).await;
    let (id, question) = writer.question(0);
    writer
        .store
        .begin_run(Fence::new(writer.thread, writer.fence), writer.run, false)
        .await
        .unwrap();
    writer
        .store
        .record_effects(Fence::new(writer.thread, writer.fence), std::slice::from_ref(&question))
        .await
        .unwrap();
    writer.store.put_snapshot(writer.thread, &writer.snapshot(2)).await.unwrap();
    writer
        .store
        .save_pending(Fence::new(writer.thread, writer.fence), &writer.pending(1), &[])
        .await
        .unwrap();
    let before = on.store.load(writer.thread, None).await.unwrap();
    on.store.close().await;

    let reopened = on.another().await;
    let after = reopened.load(writer.thread, None).await.unwrap();
    assert_eq!(format!("{after:?}"), format!("{before:?}"));
    assert_eq!(reopened.open_interrupts(writer.thread).await.unwrap()[0].id, id);
    assert_eq!(reopened.runs(writer.thread).await.unwrap()[0].id, writer.run);
    writer = Writer::claim(&reopened, writer.thread).await;
    writer.steps(1).await;
    assert_eq!(writer.head, 5);
    reopened.close().await;
}
