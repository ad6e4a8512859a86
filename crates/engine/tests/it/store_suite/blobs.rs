//! Texts that steps name and do not hold: kept with the write that brings them, gone with their thread.

use std::sync::Arc;

use perihelion_engine::checkpoint::{
    BlobRow, Commit, Encoded, Error, Fence, MemoryStore, NewThread, PendingRow, Store,
    Transfer as _, blob_row, read_blob, read_dump, write_dump,
};
use perihelion_engine::graph::{Blob, BlobName, BlobText};
use perihelion_engine::ids::ThreadId;
use serde_json::json;

use super::{
    forks::fork,
    on_every_store_sealed_too,
    stores::Fixture,
    writer::{Writer, encoded, new_thread},
};

on_every_store_sealed_too!(
    a_text_is_stored_with_the_step_that_names_it,
    a_text_of_a_pending_write_is_stored_with_it,
    a_refused_write_keeps_no_text,
    a_text_that_is_there_already_stays,
    texts_of_a_subgraph_are_readable_in_its_parent,
    a_fork_reads_the_texts_it_shares_and_keeps_them_when_its_origin_goes,
    no_row_of_a_deleted_thread_is_left,
    a_shortened_thread_keeps_its_texts_and_so_do_its_forks,
    a_shortened_fork_takes_its_texts_over,
    texts_travel_with_their_thread,
    a_thread_without_one_of_its_texts_is_not_taken_in,
);

fn text(of: &str) -> BlobText {
    let text: Arc<str> = format!("{of}, \"as it was found\"\n").repeat(200).into();
    BlobText { name: BlobName::of(&text), text }
}

/// A blob that names a text and does not hold it.
fn named(text: &BlobText) -> Blob {
    serde_json::from_value(json!(text.name)).unwrap()
}

fn row(owner: ThreadId, step: u64, text: &BlobText) -> BlobRow {
    blob_row(owner, step, text, 500).unwrap()
}

impl Writer {
    /// Prepares a step of the thread at the top that names a text and brings it.
    fn bringing(&self, text: &BlobText) -> Commit {
        let mut commit = self.next(naming(text));
        commit.blobs = vec![row(self.thread, self.head + 1, text)];
        commit
    }

    async fn bring(&mut self, text: &BlobText) {
        let commit = self.bringing(text);
        self.commit(&commit).await.unwrap();
    }

    async fn reads(&self, text: &BlobText) -> Result<Arc<str>, Error> {
        read(self.store.as_ref(), self.thread, text).await
    }
}

/// What a task wrote that names a text.
fn naming(text: &BlobText) -> Encoded {
    encoded(&json!([{ "n": "reader", "u": {}, "b": [text.name] }]))
}

async fn read(store: &dyn Store, thread: ThreadId, text: &BlobText) -> Result<Arc<str>, Error> {
    read_blob(store, thread, &named(text), "the paper").await
}

fn assert_missing(read: Result<Arc<str>, Error>, from: ThreadId) {
    match read {
        Err(Error::Blob { thread, what, reason }) => {
            assert_eq!((thread, what.as_str()), (from, "the paper"));
            assert!(reason.to_string().contains("missing"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

/// X4
async fn a_text_is_stored_with_the_step_that_names_it(on: &Fixture) {
    let mut writer = Writer::with_steps(&on.store, 1).await;
    let first = text("first");
    let second = text("second");
    assert_missing(writer.reads(&first).await, writer.thread);
    let mut commit = writer.next(naming(&first));
    let brought = [&second, &first].map(|text| row(writer.thread, 2, text));
    commit.blobs = brought.to_vec();
    commit.clears_pending = true;
    writer.commit(&commit).await.unwrap();
    for one in [&first, &second] {
        assert_eq!(writer.reads(one).await.unwrap(), one.text);
    }
    // A short one is no business of the store.
    let short = read_blob(on.store.as_ref(), writer.thread, &"short".into(), "it").await.unwrap();
    assert_eq!(&*short, "short");
    let unknown = ThreadId::new();
    let refused = on.store.blob(unknown, &first.name.hash).await;
    assert!(matches!(refused, Err(Error::UnknownThread(it)) if it == unknown), "{refused:?}");
}

fn pending_naming(text: &BlobText, step: u64) -> PendingRow {
    let body = encoded(&json!([1, { "n": "reader", "u": {}, "b": [text.name] }]));
    PendingRow { step, task: 0, body }
}

async fn a_text_of_a_pending_write_is_stored_with_it(on: &Fixture) {
    let mut writer = Writer::with_steps(&on.store, 1).await;
    let thread = writer.thread;
    let fence = writer.fence;
    let found = text("found");
    let pending = pending_naming(&found, 2);
    let blobs = [row(thread, 2, &found)];
    // A repetition after a lost reply changes nothing.
    for _ in 0..2 {
        on.store.save_pending(Fence::new(thread, fence), &pending, &blobs).await.unwrap();
    }
    assert_eq!(writer.reads(&found).await.unwrap(), found.text);
    let dump = on.store.export(thread).await.unwrap();
    assert_eq!((dump.pending, dump.blobs.len()), (vec![pending], 1));
    // The step itself brings no text that is there by then.
    let mut commit = writer.next(naming(&found));
    commit.clears_pending = true;
    writer.commit(&commit).await.unwrap();
    assert_eq!(writer.reads(&found).await.unwrap(), found.text);
}

async fn a_refused_write_keeps_no_text(on: &Fixture) {
    let mut zombie = Writer::with_steps(&on.store, 2).await;
    let thread = zombie.thread;
    let stale = zombie.fence;
    let found = text("found");
    let late = zombie.bringing(&found);
    let blobs = [row(thread, 3, &found)];
    let mut holder = Writer::claim(&on.store, thread).await;
    assert!(matches!(zombie.commit(&late).await, Err(Error::Fenced { .. })));
    let pending = pending_naming(&found, 3);
    let refused = on.store.save_pending(Fence::new(thread, stale), &pending, &blobs).await;
    assert!(matches!(refused, Err(Error::Fenced { .. })), "{refused:?}");
    holder.steps(1).await;
    // Of the holder, and behind its head.
    let refused = on.store.save_pending(Fence::new(thread, holder.fence), &pending, &blobs).await;
    assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
    let again = Commit { fence: holder.fence, ..late };
    let refused = on.store.commit(&again).await;
    assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
    assert_missing(holder.reads(&found).await, thread);
}

async fn a_text_that_is_there_already_stays(on: &Fixture) {
    let mut writer = Writer::new(&on.store).await;
    let found = text("found");
    for _ in 0..3 {
        writer.bring(&found).await;
    }
    let dump = on.store.export(writer.thread).await.unwrap();
    let kept: Vec<_> = dump.blobs.iter().map(|row| (row.owner, row.step, row.hash)).collect();
    assert_eq!(kept, [(writer.thread, 1, found.name.hash)]);
}

async fn child_of(top: &Writer, namespace: &str) -> Writer {
    let new = NewThread {
        id: top.thread.child(namespace),
        root: Some(top.thread),
        namespace: namespace.to_owned(),
        ..new_thread()
    };
    let child = top.store.create(new).await.unwrap().id;
    Writer::claim(&top.store, child).await
}

async fn texts_of_a_subgraph_are_readable_in_its_parent(on: &Fixture) {
    let mut top = Writer::with_steps(&on.store, 2).await;
    let above = text("above");
    let below = text("below");
    let deep = text("deep");
    top.bring(&above).await;
    let mut child = child_of(&top, "team:4:0").await;
    let mut deeper = child_of(&top, "team:4:0|agent:1:0").await;
    for (writer, text) in [(&mut child, &below), (&mut deeper, &deep)] {
        let mut commit = writer.next(naming(text));
        commit.blobs = vec![row(top.thread, 4, text)];
        writer.commit(&commit).await.unwrap();
    }
    for one in [&above, &below, &deep] {
        for reader in [&top, &child, &deeper] {
            assert_eq!(reader.reads(one).await.unwrap(), one.text);
        }
    }
    // A step above may name what was brought below.
    let commit = top.next(naming(&below));
    top.commit(&commit).await.unwrap();
    let dump = on.store.export(top.thread).await.unwrap();
    let steps: Vec<_> = dump.blobs.iter().map(|row| row.step).collect();
    assert_eq!(steps, [3, 4, 4]);
    let branch = fork(on, top.thread, 4).await;
    on.store.delete(top.thread).await.unwrap();
    for one in [&above, &below] {
        assert_eq!(branch.reads(one).await.unwrap(), one.text);
    }
}

async fn a_fork_reads_the_texts_it_shares_and_keeps_them_when_its_origin_goes(on: &Fixture) {
    let mut source = Writer::new(&on.store).await;
    let shared = text("shared");
    let later = text("later");
    let own = text("own");
    source.bring(&shared).await;
    source.steps(1).await;
    source.bring(&later).await;
    let mut branch = fork(on, source.thread, 2).await;
    branch.bring(&own).await;
    let leaf = fork(on, branch.thread, 3).await;
    let dump = on.store.export(leaf.thread).await.unwrap();
    assert_eq!(dump.blobs.len(), 2);
    for thread in [source.thread, branch.thread] {
        assert_eq!(leaf.reads(&shared).await.unwrap(), shared.text);
        on.store.delete(thread).await.unwrap();
    }
    for one in [&shared, &own] {
        assert_eq!(leaf.reads(one).await.unwrap(), one.text);
    }
    // What came after the fork went with the thread that it was of.
    assert_missing(leaf.reads(&later).await, leaf.thread);
    assert_eq!(on.store.export(leaf.thread).await.unwrap().blobs.len(), 2);
}

async fn no_row_of_a_deleted_thread_is_left(on: &Fixture) {
    let mut writer = Writer::new(&on.store).await;
    let found = text("found");
    writer.bring(&found).await;
    let dump = on.store.export(writer.thread).await.unwrap();
    on.store.delete(writer.thread).await.unwrap();
    // The same thread, made again without what it had, has no text of before.
    let bare = NewThread { id: writer.thread, ..new_thread() };
    on.store.create(bare).await.unwrap();
    assert_missing(writer.reads(&found).await, writer.thread);
    on.store.delete(writer.thread).await.unwrap();
    on.store.import(&dump).await.unwrap();
    assert_eq!(writer.reads(&found).await.unwrap(), found.text);
}

fn snapshot_naming(
    writer: &Writer,
    seq: u64,
    text: &BlobText,
) -> perihelion_engine::checkpoint::SnapshotRow {
    let blobs = Some(encoded(&json!([text.name])));
    perihelion_engine::checkpoint::SnapshotRow { blobs, ..writer.snapshot(seq) }
}

async fn a_shortened_thread_keeps_its_texts_and_so_do_its_forks(on: &Fixture) {
    let mut source = Writer::new(&on.store).await;
    let early = text("early");
    let late = text("late");
    source.bring(&early).await;
    let branch = fork(on, source.thread, 1).await;
    source.steps(2).await;
    source.bring(&late).await;
    on.store.put_snapshot(source.thread, &snapshot_naming(&source, 3, &early)).await.unwrap();
    on.store.truncate(source.thread, 3).await.unwrap();
    for one in [&early, &late] {
        assert_eq!(source.reads(one).await.unwrap(), one.text);
    }
    // No step names the early one any more, but the snapshot does.
    let dump = on.store.export(source.thread).await.unwrap();
    assert_eq!((dump.steps.len(), dump.blobs.len()), (1, 2));
    assert!(dump.snapshot.unwrap().blobs.is_some());
    on.store.delete(source.thread).await.unwrap();
    assert_eq!(branch.reads(&early).await.unwrap(), early.text);
    assert_missing(branch.reads(&late).await, branch.thread);
}

async fn a_shortened_fork_takes_its_texts_over(on: &Fixture) {
    let mut source = Writer::new(&on.store).await;
    let shared = text("shared");
    let later = text("later");
    source.bring(&shared).await;
    source.steps(1).await;
    let mut branch = fork(on, source.thread, 2).await;
    branch.steps(2).await;
    source.bring(&later).await;
    on.store.put_snapshot(branch.thread, &snapshot_naming(&branch, 3, &shared)).await.unwrap();
    on.store.truncate(branch.thread, 3).await.unwrap();
    on.store.delete(source.thread).await.unwrap();
    assert_eq!(branch.reads(&shared).await.unwrap(), shared.text);
    assert_missing(branch.reads(&later).await, branch.thread);
    assert_eq!(on.store.export(branch.thread).await.unwrap().blobs.len(), 1);
}

async fn texts_travel_with_their_thread(on: &Fixture) {
    let mut writer = Writer::new(&on.store).await;
    let first = text("first");
    let second = text("second");
    writer.bring(&first).await;
    writer.bring(&second).await;
    let dump = on.store.export(writer.thread).await.unwrap();
    let mut file = Vec::new();
    write_dump(&dump, &mut file).unwrap();
    let read_back = read_dump(&file[..]).unwrap();
    assert_eq!(read_back.blobs.len(), 2);
    on.store.delete(writer.thread).await.unwrap();
    on.store.import(&read_back).await.unwrap();
    let elsewhere = MemoryStore::new();
    elsewhere.import(&read_back).await.unwrap();
    for one in [&first, &second] {
        assert_eq!(writer.reads(one).await.unwrap(), one.text);
        assert_eq!(read(&elsewhere, writer.thread, one).await.unwrap(), one.text);
    }
    // A fork of what was taken in knows from which step on a text is shared.
    let branch = fork(on, writer.thread, 1).await;
    on.store.delete(writer.thread).await.unwrap();
    assert_eq!(branch.reads(&first).await.unwrap(), first.text);
    assert_missing(branch.reads(&second).await, branch.thread);
}

async fn a_thread_without_one_of_its_texts_is_not_taken_in(on: &Fixture) {
    let mut writer = Writer::new(&on.store).await;
    let first = text("first");
    let second = text("second");
    writer.bring(&first).await;
    writer.bring(&second).await;
    let whole = on.store.export(writer.thread).await.unwrap();
    on.store.delete(writer.thread).await.unwrap();
    let mut missing = whole.clone();
    missing.blobs.remove(0);
    let mut altered = whole.clone();
    altered.blobs[1].body = row(writer.thread, 2, &first).body;
    for (dump, step) in [(missing, 1), (altered, 2)] {
        match on.store.import(&dump).await {
            Err(Error::Blob { thread, what, .. }) => {
                assert_eq!(thread, writer.thread);
                assert!(what.ends_with(&format!("step {step} names")), "{what}");
            }
            other => panic!("{other:?}"),
        }
    }
    on.store.import(&whole).await.unwrap();
}
