//! Writes snapshots during the run when the deltas since the last one outweigh it, and shortens threads to a snapshot.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tracing::Instrument as _;

use crate::checkpoint::{Encoded, Error, Result, SnapshotRow, Store, names_of_state, restore};
use crate::failpoint::{Point, wrap};
use crate::graph::State;
use crate::ids::ThreadId;

/// Makes the snapshot of a step, with the names of the texts that its state names; returns its JSON's length as well.
///
/// `expected` is about how many bytes of JSON it will be.
pub(super) fn snapshot_of<S: State>(
    state: &S,
    seq: u64,
    compress_above: usize,
    expected: usize,
) -> Result<(SnapshotRow, usize)> {
    let blobs = names_of_state(state, compress_above)?;
    let (state, size) = Encoded::json_streamed(state, compress_above, expected)?;
    Ok((SnapshotRow { seq, schema_version: S::SCHEMA_VERSION, state, blobs }, size))
}

/// Decides when a snapshot is due and writes it in the background; no step waits for one.
#[derive(Debug)]
pub(super) struct Snapshots {
    thread: ThreadId,
    /// Below this number of bytes of deltas, a snapshot has no benefit.
    smallest: usize,
    /// JSON bytes of the newest snapshot that was written.
    last_size: usize,
    /// JSON bytes of the deltas since.
    since: usize,
    under_way: Option<UnderWay>,
}

#[derive(Debug)]
struct UnderWay {
    task: JoinHandle<Result<usize>>,
    /// Bytes of deltas it covers.
    covers: usize,
}

impl Snapshots {
    pub(super) fn new(store: &dyn Store, thread: ThreadId, last_size: usize, since: usize) -> Self {
        let smallest = store.snapshot_above();
        Self { thread, smallest, last_size, since, under_way: None }
    }

    /// Takes note of a step; says whether a snapshot is due.
    pub(super) async fn is_due(&mut self, delta: usize) -> bool {
        self.since += delta;
        match &self.under_way {
            Some(writing) if !writing.task.is_finished() => return false,
            Some(_) => self.conclude().await,
            None => {}
        }
        self.since >= self.last_size.max(self.smallest)
    }

    /// Starts a snapshot of a step that is committed: one ahead of the steps could outlive them.
    pub(super) fn write<S: State>(&mut self, store: &Arc<dyn Store>, seq: u64, state: &Arc<S>) {
        let store = Arc::clone(store);
        let thread = self.thread;
        let state = Arc::clone(state);
        let above = store.compress_above();
        let expected = self.last_size + self.since;
        let writing = async move {
            let encode = move || snapshot_of(&*state, seq, above, expected);
            let encoded = tokio::task::spawn_blocking(encode).await;
            let (row, size) = encoded.map_err(Error::damaged)??;
            wrap(Point::SnapshotWrite, store.put_snapshot(thread, &row)).await?;
            if let Some(cache) = store.state_cache() {
                cache.note_snapshot(thread, seq, size);
            }
            Ok(size)
        };
        let task = tokio::spawn(writing.in_current_span());
        self.under_way = Some(UnderWay { task, covers: std::mem::take(&mut self.since) });
    }

    /// Waits for an active snapshot, and writes the one that is due at the end of a run, if any.
    ///
    /// A thread opens quickly even if its run was faster than its snapshots, or deferred its steps. A failure only
    /// costs reading time later.
    pub(super) async fn finish<S: State>(mut self, end: Option<(&Arc<dyn Store>, u64, &Arc<S>)>) {
        self.conclude().await;
        if let Some((store, head, state)) = end
            && self.is_due(0).await
        {
            self.write(store, head, state);
            self.conclude().await;
        }
    }

    async fn conclude(&mut self) {
        let Some(UnderWay { task, covers }) = self.under_way.take() else { return };
        let result = task.await.unwrap_or_else(|error| Err(Error::damaged(error)));
        match result {
            Ok(size) => self.last_size = size,
            Err(error) => {
                self.since += covers;
                tracing::warn!(thread = %self.thread, %error, "a snapshot could not be written");
            }
        }
    }
}

/// Drops all but the newest `keep` steps of a thread; returns the first remaining step.
///
/// The newest step always stays, because its row has the next tasks.
///
/// A snapshot preserves the writes of the dropped steps. It is durable before any step is dropped, so a crash in
/// between leaves the thread complete. `None` if the thread has at most `keep` steps. A run under way is not disturbed,
/// since it only writes behind the head.
///
/// # Errors
/// As [`restore`], [`Steps::put_snapshot`](crate::checkpoint::Steps::put_snapshot) and
/// [`Threads::truncate`](crate::checkpoint::Threads::truncate).
pub async fn compact<S: State>(
    store: &dyn Store,
    thread: ThreadId,
    keep: u64,
) -> Result<Option<u64>> {
    let head = store.info(thread).await?.head;
    let seq = head.saturating_sub(keep.max(1));
    // An earlier call may have kept fewer: then there is nothing left to drop, and no state to restore.
    if seq == 0 || store.history(thread, Some(seq + 1), 1).await?.is_empty() {
        return Ok(None);
    }
    keep_snapshot::<S>(store, thread, seq).await?;
    let mut last = seq;
    loop {
        match store.truncate(thread, seq).await {
            Ok(()) => return Ok(Some(seq + 1)),
            // Its process ended between the step and the snapshot, or is there now.
            Err(Error::BareReturn { seq: bare, .. }) if bare > last => {
                keep_snapshot::<S>(store, thread, bare).await?;
                last = bare;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Restores a thread at a step and keeps that as a snapshot.
async fn keep_snapshot<S: State>(store: &dyn Store, thread: ThreadId, seq: u64) -> Result<()> {
    let restored = restore::<S>(store, thread, Some(seq)).await?;
    let expected = restored.snapshot_size + restored.since_snapshot;
    let (snapshot, _) = snapshot_of(&*restored.state, seq, store.compress_above(), expected)?;
    store.put_snapshot(thread, &snapshot).await
}
