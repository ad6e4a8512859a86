//! Steps that return to earlier ones: what they return to stays readable when it is dropped.

use perihelion_engine::checkpoint::{
    Error, MemoryStore, SnapshotRow, StepKind, Transfer as _, blob_row, read_blob, read_dump,
    write_dump,
};
use perihelion_engine::graph::{Blob, BlobName, BlobText};
use perihelion_engine::ids::ThreadId;
use serde_json::json;

use super::{
    forks::fork,
    histories::seqs,
    on_every_store_sealed_too,
    stores::{self, Fixture},
    writer::{Writer, encoded},
};

on_every_store_sealed_too!(
    a_shortened_thread_travels_with_the_snapshots_of_its_returns,
    shortening_needs_a_snapshot_of_each_return_that_stays,
    a_shortened_fork_takes_the_snapshots_of_its_returns_over,
    without_a_snapshot_at_a_return_the_next_one_is_exported,
    a_snapshot_that_has_no_place_is_not_taken_in,
);

impl Writer {
    /// Commits a step that returns to an earlier one.
    async fn go_back(&mut self) {
        let mut commit = self.next(encoded(&json!([{"n": "__fork__", "u": {}}])));
        commit.step.kind = StepKind::Fork;
        self.commit(&commit).await.unwrap();
    }

    async fn keep_snapshot(&self, seq: u64) {
        self.store.put_snapshot(self.thread, &self.snapshot(seq)).await.unwrap();
    }
}

/// Which snapshot each state from a step on is read from.
async fn read_from(
    on: &Fixture,
    thread: ThreadId,
    steps: std::ops::RangeInclusive<u64>,
) -> Vec<u64> {
    let mut found = Vec::new();
    for at in steps {
        let loaded = on.store.load(thread, Some(at)).await.unwrap();
        found.push(loaded.snapshot.map_or(0, |row| row.seq));
    }
    found
}

/// X4: with the texts that nothing else names.
async fn a_shortened_thread_travels_with_the_snapshots_of_its_returns(on: &Fixture) {
    let mut writer = Writer::new(&on.store).await;
    let text: std::sync::Arc<str> = "as it was found\n".repeat(500).into();
    let found = BlobText { name: BlobName::of(&text), text };
    let mut commit = writer.next(encoded(&json!([{"n": "reader", "u": {}, "b": [found.name]}])));
    commit.blobs = vec![blob_row(writer.thread, 1, &found, 500).unwrap()];
    writer.commit(&commit).await.unwrap();
    writer.steps(2).await;
    writer.go_back().await;
    writer.steps(2).await;
    writer.go_back().await;
    writer.steps(1).await;
    let names = Some(encoded(&json!([found.name])));
    let named = SnapshotRow { blobs: names, ..writer.snapshot(4) };
    on.store.put_snapshot(writer.thread, &named).await.unwrap();
    for seq in [3, 5, 7, 8] {
        writer.keep_snapshot(seq).await;
    }
    on.store.truncate(writer.thread, 3).await.unwrap();
    let mut file = Vec::new();
    write_dump(&on.store.export(writer.thread).await.unwrap(), &mut file).unwrap();
    on.store.delete(writer.thread).await.unwrap();
    let dump = read_dump(&file[..]).unwrap();
    let blob: Blob = serde_json::from_value(json!(found.name)).unwrap();
    for next in [stores::sqlite().await, stores::memory().await, stores::postgres().await] {
        next.store.import(&dump).await.unwrap();
        assert_eq!(read_from(&next, writer.thread, 3..=8).await, [3, 4, 4, 4, 7, 7]);
        let loaded = next.store.load(writer.thread, Some(4)).await.unwrap();
        assert_eq!(loaded.snapshot, Some(named.clone()));
        let read = read_blob(next.store.as_ref(), writer.thread, &blob, "it").await.unwrap();
        assert_eq!(read, found.text);
        next.store.delete(writer.thread).await.unwrap();
        next.store.close().await;
    }
    on.store.import(&dump).await.unwrap();
    assert_eq!(read_from(on, writer.thread, 3..=8).await, [3, 4, 4, 4, 7, 7]);
}

async fn shortening_needs_a_snapshot_of_each_return_that_stays(on: &Fixture) {
    let mut writer = Writer::with_steps(&on.store, 3).await;
    writer.go_back().await;
    writer.steps(1).await;
    writer.keep_snapshot(2).await;
    // A later one says nothing of the step itself.
    writer.keep_snapshot(5).await;
    let refused = on.store.truncate(writer.thread, 2).await;
    assert!(matches!(refused, Err(Error::BareReturn { seq: 4, .. })), "{refused:?}");
    assert_eq!(seqs(&on.store.history(writer.thread, None, 9).await.unwrap()), [5, 4, 3, 2, 1]);
    writer.keep_snapshot(4).await;
    on.store.truncate(writer.thread, 2).await.unwrap();
    assert_eq!(read_from(on, writer.thread, 2..=5).await, [2, 2, 4, 5]);
    // Of a return that is dropped itself nothing is needed.
    on.store.truncate(writer.thread, 5).await.unwrap();
}

async fn a_shortened_fork_takes_the_snapshots_of_its_returns_over(on: &Fixture) {
    let mut source = Writer::with_steps(&on.store, 3).await;
    source.go_back().await;
    source.steps(2).await;
    source.keep_snapshot(4).await;
    let mut branch = fork(on, source.thread, 5).await;
    branch.steps(1).await;
    branch.keep_snapshot(2).await;
    on.store.truncate(branch.thread, 2).await.unwrap();
    on.store.delete(source.thread).await.unwrap();
    assert_eq!(read_from(on, branch.thread, 2..=6).await, [2, 2, 4, 4, 4]);
}

/// A thread whose return (step 4) stays when the steps up to 2 are dropped, with snapshots of 4 and 5.
async fn shortened(on: &Fixture) -> Writer {
    let mut writer = Writer::with_steps(&on.store, 3).await;
    writer.go_back().await;
    writer.steps(2).await;
    for seq in [2, 4, 5] {
        writer.keep_snapshot(seq).await;
    }
    on.store.truncate(writer.thread, 2).await.unwrap();
    writer
}

/// As older versions may have shortened it.
async fn without_a_snapshot_at_a_return_the_next_one_is_exported(on: &Fixture) {
    let writer = shortened(on).await;
    let mut dump = on.store.export(writer.thread).await.unwrap();
    assert_eq!(dump.returned, [writer.snapshot(4)]);
    dump.returned = vec![writer.snapshot(5)];
    on.store.delete(writer.thread).await.unwrap();
    on.store.import(&dump).await.unwrap();
    let again = on.store.export(writer.thread).await.unwrap();
    assert_eq!(again.returned, [writer.snapshot(5)]);
}

async fn a_snapshot_that_has_no_place_is_not_taken_in(on: &Fixture) {
    let whole = Writer::with_steps(&on.store, 3).await;
    let writer = shortened(on).await;
    let snapshots =
        [(&whole, vec![4]), (&writer, vec![2]), (&writer, vec![7]), (&writer, vec![4, 4])];
    for (of, returned) in snapshots {
        let mut dump = on.store.export(of.thread).await.unwrap();
        dump.returned = returned.into_iter().map(|seq| of.snapshot(seq)).collect();
        let refused = MemoryStore::new().import(&dump).await;
        assert!(matches!(refused, Err(Error::Import(_))), "{refused:?}");
    }
}
