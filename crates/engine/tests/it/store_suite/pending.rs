//! What finished tasks of an unfinished step wrote.

use perihelion_engine::checkpoint::{Error, Fence};
use serde_json::json;

use super::{
    on_every_store_sealed_too,
    stores::Fixture,
    writer::{Writer, encoded},
};

on_every_store_sealed_too!(
    pending_writes_are_found_again_in_task_order,
    the_first_pending_write_of_a_task_wins,
    the_commit_clears_the_pending_writes_of_its_step,
    pending_writes_belong_to_the_next_step_alone,
    an_older_step_shows_no_pending_writes,
);

/// S1.03
async fn pending_writes_are_found_again_in_task_order(on: &Fixture) {
    let writer = Writer::with_steps(&on.store, 1).await;
    for task in [7, 0, 3] {
        on.store
            .save_pending(Fence::new(writer.thread, writer.fence), &writer.pending(task), &[])
            .await
            .unwrap();
    }
    let pending = on.store.load(writer.thread, None).await.unwrap().pending;
    assert_eq!(pending, [writer.pending(0), writer.pending(3), writer.pending(7)]);
}

async fn the_first_pending_write_of_a_task_wins(on: &Fixture) {
    let writer = Writer::new(&on.store).await;
    let first = writer.pending(0);
    let mut second = first.clone();
    second.body = encoded(&json!("other"));
    for row in [&first, &first, &second] {
        on.store.save_pending(Fence::new(writer.thread, writer.fence), row, &[]).await.unwrap();
    }
    assert_eq!(on.store.load(writer.thread, None).await.unwrap().pending, [first]);
}

async fn the_commit_clears_the_pending_writes_of_its_step(on: &Fixture) {
    let mut writer = Writer::new(&on.store).await;
    let bystander = Writer::new(&on.store).await;
    on.store
        .save_pending(Fence::new(bystander.thread, bystander.fence), &bystander.pending(0), &[])
        .await
        .unwrap();
    on.store
        .save_pending(Fence::new(writer.thread, writer.fence), &writer.pending(0), &[])
        .await
        .unwrap();
    let mut commit = writer.next(encoded(&json!([])));
    commit.clears_pending = true;
    writer.commit(&commit).await.unwrap();
    assert!(on.store.load(writer.thread, None).await.unwrap().pending.is_empty());
    assert_eq!(on.store.load(bystander.thread, None).await.unwrap().pending.len(), 1);
}

async fn pending_writes_belong_to_the_next_step_alone(on: &Fixture) {
    let mut writer = Writer::with_steps(&on.store, 2).await;
    let of_next = writer.pending(0);
    for step in [1, 2, 4] {
        let row = perihelion_engine::checkpoint::PendingRow { step, ..of_next.clone() };
        let refused =
            on.store.save_pending(Fence::new(writer.thread, writer.fence), &row, &[]).await;
        assert!(matches!(refused, Err(Error::Conflict { head: 2, .. })), "{refused:?}");
    }
    on.store.save_pending(Fence::new(writer.thread, writer.fence), &of_next, &[]).await.unwrap();
    writer.steps(1).await;
    assert!(on.store.load(writer.thread, None).await.unwrap().pending.is_empty());
}

async fn an_older_step_shows_no_pending_writes(on: &Fixture) {
    let writer = Writer::with_steps(&on.store, 2).await;
    on.store
        .save_pending(Fence::new(writer.thread, writer.fence), &writer.pending(0), &[])
        .await
        .unwrap();
    assert!(on.store.load(writer.thread, Some(1)).await.unwrap().pending.is_empty());
    assert_eq!(on.store.load(writer.thread, Some(2)).await.unwrap().pending.len(), 1);
}
