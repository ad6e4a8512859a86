//! Forks share history instead of copying it (X3).

use perihelion_engine::checkpoint::Fence;
use perihelion_engine::{
    checkpoint::{Error, NewThread},
    ids::ThreadId,
};

use super::{
    histories::seqs,
    on_durable_stores, on_every_store_sealed_too,
    stores::Fixture,
    writer::{Writer, new_thread},
};

on_every_store_sealed_too!(
    a_fork_reads_the_shared_steps_and_goes_its_own_way,
    a_fork_of_a_fork_reads_through_both,
    a_fork_takes_no_abandoned_branch_along,
    a_fork_uses_snapshots_it_shares_and_no_later_ones,
    a_fork_can_start_at_any_step_that_is_there,
    a_fork_needs_a_fresh_id,
    a_fork_starts_without_pending_writes_effects_and_runs,
);
on_durable_stores!(a_fork_copies_no_step);

pub async fn fork(on: &Fixture, source: ThreadId, at: u64) -> Writer {
    let info = on.store.fork(source, at, new_thread()).await.unwrap();
    assert_eq!(info.forked_from, Some((source, at)));
    assert_eq!(info.head, at);
    Writer::claim(&on.store, info.id).await
}

/// X3
async fn a_fork_reads_the_shared_steps_and_goes_its_own_way(on: &Fixture) {
    let mut source = Writer::with_steps(&on.store, 6).await;
    let mut branch = fork(on, source.thread, 4).await;
    branch.steps(3).await;
    source.steps(2).await;
    let theirs = on.store.load(source.thread, None).await.unwrap().steps;
    let ours = on.store.load(branch.thread, None).await.unwrap().steps;
    assert_eq!(seqs(&theirs), (1..=8).collect::<Vec<_>>());
    assert_eq!(seqs(&ours), (1..=7).collect::<Vec<_>>());
    assert_eq!(theirs[..4], ours[..4]);
    assert_eq!((theirs[4].run, ours[4].run), (source.run, branch.run));
}

async fn a_fork_of_a_fork_reads_through_both(on: &Fixture) {
    let source = Writer::with_steps(&on.store, 6).await;
    let mut child = fork(on, source.thread, 4).await;
    child.steps(4).await;
    let mut late = fork(on, child.thread, 7).await;
    late.steps(1).await;
    let mut early = fork(on, child.thread, 2).await;
    early.steps(1).await;
    for (writer, head) in [(late, 8), (early, 3)] {
        let steps = on.store.load(writer.thread, None).await.unwrap().steps;
        assert_eq!(seqs(&steps), (1..=head).collect::<Vec<_>>());
        assert_eq!(steps.last().unwrap().run, writer.run);
        let page = on.store.history(writer.thread, Some(3), 2).await.unwrap();
        assert_eq!(seqs(&page), [2, 1]);
        assert_eq!(on.store.load(writer.thread, Some(1)).await.unwrap().steps.len(), 1);
    }
}

async fn a_fork_takes_no_abandoned_branch_along(on: &Fixture) {
    let source = Writer::with_steps(&on.store, 9).await;
    let mut branch = fork(on, source.thread, 3).await;
    branch.steps(2).await;
    let own_runs = on.store.load(branch.thread, None).await.unwrap().steps;
    let from_source = own_runs.iter().filter(|step| step.run == source.run).count();
    assert_eq!(from_source, 3);
}

async fn a_fork_uses_snapshots_it_shares_and_no_later_ones(on: &Fixture) {
    let source = Writer::with_steps(&on.store, 9).await;
    on.store.put_snapshot(source.thread, &source.snapshot(2)).await.unwrap();
    on.store.put_snapshot(source.thread, &source.snapshot(8)).await.unwrap();
    let mut branch = fork(on, source.thread, 5).await;
    branch.steps(5).await;
    let loaded = on.store.load(branch.thread, None).await.unwrap();
    assert_eq!(loaded.snapshot.unwrap().seq, 2);
    assert_eq!(seqs(&loaded.steps), (3..=10).collect::<Vec<_>>());
    on.store.put_snapshot(branch.thread, &branch.snapshot(7)).await.unwrap();
    let loaded = on.store.load(branch.thread, None).await.unwrap();
    assert_eq!(loaded.snapshot.unwrap().seq, 7);
}

async fn a_fork_can_start_at_any_step_that_is_there(on: &Fixture) {
    let source = Writer::with_steps(&on.store, 2).await;
    let mut empty = fork(on, source.thread, 0).await;
    empty.steps(1).await;
    assert_eq!(on.store.load(empty.thread, None).await.unwrap().steps.len(), 1);
    let refused = on.store.fork(source.thread, 3, new_thread()).await;
    assert!(matches!(refused, Err(Error::UnknownStep { seq: 3, head: 2, .. })), "{refused:?}");
    let unknown = ThreadId::new();
    let refused = on.store.fork(unknown, 0, new_thread()).await;
    assert!(matches!(refused, Err(Error::UnknownThread(id)) if id == unknown), "{refused:?}");
}

async fn a_fork_needs_a_fresh_id(on: &Fixture) {
    let source = Writer::with_steps(&on.store, 2).await;
    let taken = NewThread { id: source.thread, ..new_thread() };
    let refused = on.store.fork(source.thread, 1, taken).await;
    assert!(matches!(refused, Err(Error::ThreadExists(id)) if id == source.thread), "{refused:?}");
    assert_eq!(on.store.info(source.thread).await.unwrap().head, 2);
}

async fn a_fork_starts_without_pending_writes_effects_and_runs(on: &Fixture) {
    let source = Writer::with_steps(&on.store, 2).await;
    let thread = source.thread;
    let fence = source.fence;
    on.store.begin_run(Fence::new(thread, fence), source.run, false).await.unwrap();
    on.store.save_pending(Fence::new(thread, fence), &source.pending(0), &[]).await.unwrap();
    on.store
        .record_effects(Fence::new(thread, fence), std::slice::from_ref(&source.question(0).1))
        .await
        .unwrap();
    let branch = fork(on, thread, 2).await.thread;
    assert!(on.store.load(branch, None).await.unwrap().pending.is_empty());
    assert!(on.store.effects(branch, None).await.unwrap().is_empty());
    assert!(on.store.open_interrupts(branch).await.unwrap().is_empty());
    assert!(on.store.runs(branch).await.unwrap().is_empty());
}

/// X1
async fn a_fork_copies_no_step(on: &Fixture) {
    let source = Writer::with_steps(&on.store, 20).await;
    let mut branch = fork(on, source.thread, 15).await;
    assert_eq!(on.own_steps(branch.thread).await, Some(0));
    branch.steps(2).await;
    assert_eq!(on.own_steps(branch.thread).await, Some(2));
    assert_eq!(on.own_steps(source.thread).await, Some(20));
}
