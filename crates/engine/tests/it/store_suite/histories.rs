//! Reading a thread at any of its steps.

use perihelion_engine::{checkpoint::Error, ids::ThreadId};

use super::{on_every_store_sealed_too, stores::Fixture, writer::Writer};

on_every_store_sealed_too!(
    a_thread_is_restored_at_any_step,
    loading_starts_at_the_newest_snapshot_that_fits,
    the_first_snapshot_of_a_step_wins,
    a_snapshot_of_a_step_that_is_not_there_is_refused,
    history_is_newest_first_and_pages_without_gaps,
    a_step_beyond_the_head_is_unknown,
    an_unknown_thread_has_no_history,
);

pub fn seqs(steps: &[perihelion_engine::checkpoint::StepRow]) -> Vec<u64> {
    steps.iter().map(|step| step.seq).collect()
}

/// X3
async fn a_thread_is_restored_at_any_step(on: &Fixture) {
    let writer = Writer::with_steps(&on.store, 12).await;
    on.store.put_snapshot(writer.thread, &writer.snapshot(4)).await.unwrap();
    on.store.put_snapshot(writer.thread, &writer.snapshot(9)).await.unwrap();
    for at in 0..=12 {
        let loaded = on.store.load(writer.thread, Some(at)).await.unwrap();
        let base = [9, 4, 0].into_iter().find(|seq| *seq <= at).unwrap();
        assert_eq!(loaded.snapshot.map_or(0, |snapshot| snapshot.seq), base);
        assert_eq!(seqs(&loaded.steps), (base + 1..=at).collect::<Vec<_>>());
        assert_eq!(loaded.info.head, 12);
    }
}

/// X1
async fn loading_starts_at_the_newest_snapshot_that_fits(on: &Fixture) {
    let writer = Writer::with_steps(&on.store, 5).await;
    on.store.put_snapshot(writer.thread, &writer.snapshot(5)).await.unwrap();
    let loaded = on.store.load(writer.thread, None).await.unwrap();
    assert_eq!(loaded.snapshot, Some(writer.snapshot(5)));
    assert!(loaded.steps.is_empty());
}

async fn the_first_snapshot_of_a_step_wins(on: &Fixture) {
    let writer = Writer::with_steps(&on.store, 3).await;
    let first = writer.snapshot(3);
    let mut second = first.clone();
    second.schema_version = 9;
    on.store.put_snapshot(writer.thread, &first).await.unwrap();
    on.store.put_snapshot(writer.thread, &second).await.unwrap();
    assert_eq!(on.store.load(writer.thread, None).await.unwrap().snapshot, Some(first));
}

async fn a_snapshot_of_a_step_that_is_not_there_is_refused(on: &Fixture) {
    let writer = Writer::with_steps(&on.store, 3).await;
    let refused = on.store.put_snapshot(writer.thread, &writer.snapshot(4)).await;
    assert!(matches!(refused, Err(Error::UnknownStep { seq: 4, head: 3, .. })), "{refused:?}");
    let refused = on.store.put_snapshot(ThreadId::new(), &writer.snapshot(1)).await;
    assert!(matches!(refused, Err(Error::UnknownThread(_))), "{refused:?}");
}

async fn history_is_newest_first_and_pages_without_gaps(on: &Fixture) {
    let writer = Writer::with_steps(&on.store, 10).await;
    on.store.put_snapshot(writer.thread, &writer.snapshot(6)).await.unwrap();
    let mut found = Vec::new();
    let mut before = None;
    loop {
        let page = on.store.history(writer.thread, before, 4).await.unwrap();
        assert!(page.len() <= 4);
        let Some(last) = page.last() else { break };
        before = Some(last.seq);
        found.extend(seqs(&page));
    }
    assert_eq!(found, (1..=10).rev().collect::<Vec<_>>());
    assert_eq!(on.store.history(writer.thread, None, u32::MAX).await.unwrap().len(), 10);
    assert!(on.store.history(writer.thread, Some(0), 4).await.unwrap().is_empty());
    assert!(on.store.history(writer.thread, None, 0).await.unwrap().is_empty());
    assert_eq!(on.store.history(writer.thread, Some(u64::MAX), 1).await.unwrap()[0].seq, 10);
}

async fn a_step_beyond_the_head_is_unknown(on: &Fixture) {
    let writer = Writer::with_steps(&on.store, 2).await;
    for at in [3, u64::MAX] {
        let refused = on.store.load(writer.thread, Some(at)).await;
        assert!(matches!(refused, Err(Error::UnknownStep { head: 2, .. })), "{refused:?}");
    }
}

async fn an_unknown_thread_has_no_history(on: &Fixture) {
    let thread = ThreadId::new();
    let refusals = [
        on.store.load(thread, None).await.map(drop),
        on.store.info(thread).await.map(drop),
        on.store.history(thread, None, 1).await.map(drop),
        on.store.effects(thread, None).await.map(drop),
        on.store.open_interrupts(thread).await.map(drop),
        on.store.runs(thread).await.map(drop),
        on.store.export(thread).await.map(drop),
        on.store.delete(thread).await,
        on.store.truncate(thread, 1).await,
    ];
    for refusal in refusals {
        assert!(matches!(refusal, Err(Error::UnknownThread(id)) if id == thread), "{refusal:?}");
    }
}
