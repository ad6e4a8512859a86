//! What a store is made of: a few traits with one purpose each, and what a crash leaves of each.
//!
//! [`Store`](super::Store) is all of them but [`Outbox`]. Invariant: a writing method is one atomic write, and one that takes a `fence`
//! changes nothing under a token that is not the thread's newest. Deliberately absent: any statement; each store writes
//! its own, or those that both databases share.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    BlobRow, Claim, Commit, EffectRow, EffectSettlement, Encoded, Error, EventPosition, EventRow,
    Fence, Loaded, NewThread, OpenInterrupt, PendingExport, PendingRow, RunEnd, RunRow,
    SnapshotRow, StateCache, StepRow, ThreadDump, ThreadFilter, ThreadInfo, ThreadStatus, Waiting,
    WorkFilter,
};
use crate::ids::{InterruptId, RunId, ThreadId};

/// Makes, finds and removes threads.
///
/// Crash contract: a thread is there whole or not at all, and so is what a fork shares or is handed when the thread it
/// was forked from goes. Nothing here asks for a fencing token: who removes a thread says what it was seen as, and who
/// runs it finds it gone.
#[async_trait]
pub trait Threads: Send + Sync {
    /// Makes a thread at head 0, status idle, fence 0.
    async fn create(&self, new: NewThread) -> Result<ThreadInfo, Error>;

    /// Returns a thread's row.
    async fn info(&self, thread: ThreadId) -> Result<ThreadInfo, Error>;

    /// Makes a thread whose history up to `at` is shared with `source`, without copying a step.
    async fn fork(&self, source: ThreadId, at: u64, new: NewThread) -> Result<ThreadInfo, Error>;

    /// Lists threads, newest update first.
    async fn list(&self, filter: &ThreadFilter) -> Result<Vec<ThreadInfo>, Error>;

    /// Counts the threads at the top by status; a status that none has may be missing.
    async fn count_threads(&self) -> Result<Vec<(ThreadStatus, u64)>, Error>;

    /// Deletes a thread, its subgraphs' threads and everything of them; forks keep the history they share.
    async fn delete(&self, thread: ThreadId) -> Result<(), Error>;

    /// Deletes a thread as [`Threads::delete`] does, but only while it is as it was seen.
    ///
    /// For a caller that decided by what it saw: that nobody runs the thread, that it is old. Otherwise
    /// [`Error::Moved`], and nothing is deleted.
    async fn delete_as_seen(&self, seen: &ThreadInfo) -> Result<(), Error>;

    /// Drops steps, effects and snapshots older than the snapshot at `seq`, which must exist; forks keep theirs.
    ///
    /// Each return to an earlier step that stays needs a snapshot too, since that step may be dropped: otherwise
    /// [`Error::BareReturn`], and nothing is dropped.
    async fn truncate(&self, thread: ThreadId, seq: u64) -> Result<(), Error>;
}

/// Gives a thread to one writer at a time.
///
/// Crash contract: a claim that was acknowledged is there with its token, and one that was not may be: its lease runs
/// out. A run that was begun and never ended stays so, with its thread busy, until the next claim. The fenced methods
/// write nothing and return [`Error::Fenced`] when the token is not the thread's newest; the check and the write are
/// one.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Takes the thread's lease, raises its fencing token and sets the status to busy.
    ///
    /// Succeeds when no lease is held, it has run out, or the claim is forced, and the token is still the one that was
    /// seen, where one is named. Otherwise [`Error::Busy`], and nothing is written.
    async fn claim(&self, claim: Claim<'_>) -> Result<ThreadInfo, Error>;

    /// Lists threads at the top that are queued, or busy under a lease that has run out, or busy with a
    /// holder on the given machine; in the database's time.
    ///
    /// The queue of a store is this status alone: whatever is written with it survives a crash with it.
    async fn waiting(&self, wanted: &WorkFilter) -> Result<Vec<Waiting>, Error>;

    /// Extends the lease to `ttl` from now, unless it was given back. Fenced.
    async fn renew(&self, fence: Fence, ttl: Duration) -> Result<(), Error>;

    /// Starts a run under the claim and returns it. Fenced.
    ///
    /// One that `exports` its trace is in the [`Outbox`] from then on, by the same write.
    async fn begin_run(&self, fence: Fence, run: RunId, exports: bool) -> Result<RunRow, Error>;

    /// Ends a run, sets the thread's status and error, and gives the lease back, in one write. Fenced.
    ///
    /// A thread that was to be interrupted is queued instead when an answer came while it was busy. With
    /// the status queued, the workers' wake-up call is part of the same write. Of a run that has ended nothing changes: it may
    /// be sent twice, and what came in between stands.
    async fn end_run(&self, fence: Fence, run: RunId, end: RunEnd<'_>) -> Result<(), Error>;

    /// Returns the runs of a thread, oldest first.
    async fn runs(&self, thread: ThreadId) -> Result<Vec<RunRow>, Error>;
}

/// Keeps the steps of threads.
///
/// Crash contract: a step is there with the head, the status and the texts that came with it, or none of them is; after
/// `Ok` it is durable. The fenced methods write nothing and return [`Error::Fenced`] when the token is not the thread's
/// newest; the check and the write are one statement.
#[async_trait]
pub trait Steps: Send + Sync {
    /// Commits one step: row, head move, status and fencing check in one statement, one round trip.
    ///
    /// After a lost reply (the connection broke) the store reads the head back and compares the hash,
    /// so `Ok` means committed and an error other than a broken database means not committed.
    ///
    /// The texts that the step brings are part of the same write; one that is there already stays, and counts from the
    /// earlier of the two steps.
    async fn commit(&self, commit: &Commit) -> Result<(), Error>;

    /// Keeps what a finished task wrote while others of its step still run, with the texts that it brings. Fenced,
    /// idempotent per task.
    async fn save_pending(
        &self,
        fence: Fence,
        row: &PendingRow,
        blobs: &[BlobRow],
    ) -> Result<(), Error>;

    /// Reads what is needed to restore the thread at `at`, or at its head.
    async fn load(&self, thread: ThreadId, at: Option<u64>) -> Result<Loaded, Error>;

    /// Reads what a reader lacks who knows the state at the step `since`: that step and those after it, and no snapshot.
    async fn load_since(
        &self,
        thread: ThreadId,
        since: u64,
        at: Option<u64>,
    ) -> Result<Loaded, Error>;

    /// Returns the states that were restored from this store; none for a store that keeps none.
    fn state_cache(&self) -> Option<&StateCache> {
        None
    }

    /// Returns steps before `before` (or from the head), newest first, at most `limit`; shared history included.
    async fn history(
        &self,
        thread: ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<StepRow>, Error>;

    /// Keeps a snapshot; a second one for the same step is ignored. Not fenced: its content follows from the steps.
    async fn put_snapshot(&self, thread: ThreadId, snapshot: &SnapshotRow) -> Result<(), Error>;

    /// Returns a text that a step of the thread names, of the thread at the top or of those it was forked from.
    ///
    /// Not checked against its hash: [`read_blob`](super::read_blob) does that. `None` where it is not kept.
    async fn blob(&self, thread: ThreadId, hash: &[u8; 32]) -> Result<Option<BlobRow>, Error>;
}

/// Keeps the effects of a thread's tasks.
///
/// Crash contract: an effect that was recorded is found by the one who continues with the thread; one whose end was lost
/// stands as started. The writing methods write nothing and return [`Error::Fenced`] when the token is not the
/// thread's newest; the check and the write are one statement.
#[async_trait]
pub trait Effects: Send + Sync {
    /// Records effects of one task: started tool calls, open interrupts, finished calls of any kind, notes. Fenced.
    ///
    /// One that is there already stays as it is.
    async fn record_effects(&self, fence: Fence, effects: &[EffectRow]) -> Result<(), Error>;

    /// Records the end or a further attempt of an effect that is started or failed. Fenced.
    ///
    /// One that is done stays as it is: [`Error::UnknownEffect`], unless the settlement is the same one.
    async fn settle_effect(&self, fence: Fence, end: &EffectSettlement) -> Result<(), Error>;

    /// Returns the effects of one step, or of all, in order of step, task and number; own rows only.
    async fn effects(&self, thread: ThreadId, step: Option<u64>) -> Result<Vec<EffectRow>, Error>;

    /// Returns the effects of `step` and of any later one, which a crash may have left uncommitted.
    async fn effects_from(&self, thread: ThreadId, step: u64) -> Result<Vec<EffectRow>, Error>;
}

/// Keeps open interrupts, which are effects, and takes their answers.
///
/// Crash contract: an answer that was acknowledged is there, and its thread is queued or will be by the end of its run;
/// a second one is refused.
#[async_trait]
pub trait Questions: Send + Sync {
    /// Returns the open interrupts of the thread and of its subgraphs' threads, oldest first.
    async fn open_interrupts(&self, thread: ThreadId) -> Result<Vec<OpenInterrupt>, Error>;

    /// Returns the thread at the top below which an open interrupt is asked; `None` when it is not open.
    async fn asked_below(&self, interrupt: InterruptId) -> Result<Option<ThreadId>, Error>;

    /// Answers an interrupt; not fenced, since a person answers while nobody holds the thread.
    ///
    /// The same write queues the thread at the top if it is interrupted, wake-up call included, and marks
    /// it if it is busy, so that the end of its run queues it: an answer is never waited for in vain.
    ///
    /// [`Error::InterruptClosed`] on a second answer, [`Error::UnknownInterrupt`] when there is none.
    async fn answer(&self, interrupt: InterruptId, answer: &Encoded) -> Result<(), Error>;
}

/// Keeps a log of events for each thread.
///
/// Crash contract: a batch is there whole or not at all, and the log has no gap. Appending writes nothing and returns
/// [`Error::Fenced`] when the token is not the thread's newest; the check and the write are one statement.
#[async_trait]
pub trait Events: Send + Sync {
    /// Appends a batch of events to the thread's log. Fenced.
    ///
    /// The batch takes the ids `first` to `first + count - 1`, which must follow the newest one; that is
    /// checked in the statement that writes, as is the fence. [`Error::EventGap`] otherwise, unless this very
    /// batch is there already: a repetition after a lost reply succeeds. A crash leaves the whole batch or
    /// nothing of it. On Postgres the same write tells anyone who listens, by the thread's id alone.
    async fn append_events(&self, fence: Fence, batch: &EventRow) -> Result<(), Error>;

    /// Returns how far the thread's log of events reaches; it does not go back when rows are dropped.
    async fn event_position(&self, thread: ThreadId) -> Result<EventPosition, Error>;

    /// Returns batches that hold events with ids above `after`, oldest first, at most `limit`.
    ///
    /// The first one may begin before that. Batches that were dropped are left out.
    async fn events_after(
        &self,
        thread: ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<EventRow>, Error>;

    /// Drops batches that were written longer ago than `kept`, at most `most`, and returns how many.
    ///
    /// Those of threads that are busy or queued stay. In the database's time.
    async fn prune_events(&self, kept: Duration, most: u32) -> Result<u64, Error>;
}

/// Reads and writes threads as a whole.
///
/// Crash contract: an export changes nothing and is of one moment; an import leaves the thread with its subgraphs'
/// threads, or nothing.
#[async_trait]
pub trait Transfer: Send + Sync {
    /// Reads a whole thread; [`Error::Corrupt`] where [`Transfer::import`] would refuse it.
    async fn export(&self, thread: ThreadId) -> Result<ThreadDump, Error>;

    /// Writes a whole thread in one transaction; [`Error::ThreadExists`] when its id is taken.
    async fn import(&self, dump: &ThreadDump) -> Result<(), Error>;
}

/// The export cursor: one row per thread with a pending export, none for the others.
///
/// It is written with the beginning of a run ([`Leases::begin_run`]) and after a
/// delivery, never by a step. A crash before `paid` delivers the same spans, under the same ids, again.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Returns what is pending, longest first, at most `limit`.
    async fn pending(&self, limit: u32) -> Result<Vec<PendingExport>, Error>;

    /// Returns how many threads have something pending.
    async fn count(&self) -> Result<u64, Error>;

    /// Returns what a thread has pending.
    async fn pending_of(&self, thread: ThreadId) -> Result<Option<PendingExport>, Error>;

    /// Notes that all runs up to this number were delivered as they will stay.
    async fn paid(&self, thread: ThreadId, run: u32) -> Result<(), Error>;
}
