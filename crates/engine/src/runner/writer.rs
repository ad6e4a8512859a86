//! Commits steps in order, as early or late as the durability mode allows; writes snapshots.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tracing::Instrument as _;

use super::outcome::Durability;
use crate::checkpoint::{
    BlobRow, Commit, Encoded, Error, Restored, Result, SnapshotRow, StepKind, StepRow, Steps,
    Store, ThreadInfo, ThreadStatus, blob_row, chain_hash, names_of_state, restore,
};
use crate::clock;
use crate::failpoint::{Point, wrap};
use crate::graph::{BlobText, State, step_at_the_top};
use crate::ids::{RunId, ThreadId};
use crate::observer::{Timer, report};

/// A step as the engine hands it over.
#[derive(Debug)]
pub(super) struct Step {
    pub seq: u64,
    pub kind: StepKind,
    pub delta: Vec<u8>,
    pub frontier: Vec<u8>,
    pub clears_pending: bool,
    /// The texts that it names and that are not kept yet.
    pub texts: Vec<BlobText>,
}

pub(super) struct Writer {
    store: Arc<dyn Store>,
    /// The thread as claimed.
    info: ThreadInfo,
    run: RunId,
    /// The version of the state's schema.
    schema_version: u32,
    durability: Durability,
    hash: [u8; 32],
    under_way: Option<JoinHandle<Result<()>>>,
    deferred: Vec<Commit>,
}

impl Writer {
    pub(super) fn new<S: State>(
        store: Arc<dyn Store>,
        claimed: &Restored<S>,
        run: RunId,
        durability: Durability,
    ) -> Self {
        Self {
            store,
            info: claimed.info.clone(),
            run,
            schema_version: S::SCHEMA_VERSION,
            durability,
            hash: claimed.hash,
            under_way: None,
            deferred: Vec::new(),
        }
    }

    /// Writes an input immediately in every mode, so that a crash never loses it.
    pub(super) async fn write_now(&mut self, step: Step) -> Result<()> {
        let commit = self.link(step)?;
        self.flush().await?;
        commit_at(Point::InputCommit, self.store.as_ref(), &commit).await
    }

    /// Writes a step now, during the next one, or at the end of the run.
    ///
    /// One with texts is written now in every mode, with all before it: the step that follows may read them.
    pub(super) async fn write(&mut self, step: Step) -> Result<()> {
        let commit = self.link(step)?;
        let may_wait = commit.blobs.is_empty();
        if may_wait && self.durability == Durability::Exit {
            self.deferred.push(commit);
            return Ok(());
        }
        self.flush().await?;
        let store = Arc::clone(&self.store);
        let committing = async move { commit_at(Point::StepCommit, store.as_ref(), &commit).await };
        if may_wait && self.durability == Durability::Async {
            self.under_way = Some(tokio::spawn(committing.in_current_span()));
            return Ok(());
        }
        committing.await
    }

    /// Makes everything durable that can be without giving the mode up; says whether all of it is.
    pub(super) async fn settle(&mut self) -> Result<bool> {
        if self.durability == Durability::Async {
            self.flush().await?;
        }
        Ok(self.deferred.is_empty())
    }

    fn link(&mut self, step: Step) -> Result<Commit> {
        let Step { seq, kind, delta, frontier, clears_pending, texts } = step;
        let blobs = self.blobs(seq, &texts)?;
        let hash = chain_hash(&self.hash, seq, &delta, &frontier);
        self.hash = hash;
        Ok(Commit {
            thread: self.info.id,
            fence: self.info.fence,
            step: StepRow {
                seq,
                kind,
                run: self.run,
                schema_version: self.schema_version,
                delta: Encoded::json_text(delta, self.store.compress_above())?,
                frontier,
                hash,
                at: clock::now(),
            },
            status: ThreadStatus::Busy,
            clears_pending,
            blobs,
        })
    }

    pub(super) fn blobs(&self, step: u64, texts: &[BlobText]) -> Result<Vec<BlobRow>> {
        let step = step_at_the_top(&self.info.namespace, step);
        let above = self.store.compress_above();
        texts.iter().map(|text| blob_row(self.info.top(), step, text, above)).collect()
    }

    /// Waits until everything handed over is durable.
    pub(super) async fn flush(&mut self) -> Result<()> {
        for commit in self.deferred.drain(..) {
            commit_at(Point::StepCommit, self.store.as_ref(), &commit).await?;
        }
        match self.under_way.take() {
            None => Ok(()),
            Some(task) => task.await.unwrap_or_else(|error| Err(Error::damaged(error))),
        }
    }
}

async fn commit_at(point: Point, store: &dyn Steps, commit: &Commit) -> Result<()> {
    let timer = Timer::start();
    let committed = wrap(point, store.commit(commit)).await;
    if let Some(took) = timer.elapsed() {
        report(|observer| observer.step_committed(took, committed.is_ok()));
    }
    committed
}

/// Makes the snapshot of a step, with the names of the texts that its state names; returns its JSON's length as well.
///
/// `expected` is about how many bytes of JSON it will be.
fn snapshot_of<S: State>(
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
            store.state_cache().note_snapshot(thread, seq, size);
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

async fn keep_snapshot<S: State>(store: &dyn Store, thread: ThreadId, seq: u64) -> Result<()> {
    put_snapshot(store, &restore::<S>(store, thread, Some(seq)).await?, seq).await
}

/// Stores a state that was restored as the snapshot of a step.
pub(super) async fn put_snapshot<S: State>(
    store: &dyn Store,
    restored: &Restored<S>,
    seq: u64,
) -> Result<()> {
    let expected = restored.snapshot_size + restored.since_snapshot;
    let (snapshot, _) = snapshot_of(&*restored.state, seq, store.compress_above(), expected)?;
    store.put_snapshot(restored.info.id, &snapshot).await
}
