//! The store trait and its crash contract.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{
    BlobRow, Commit, EffectRow, EffectSettlement, Encoded, Error, EventMark, EventRow, Loaded,
    NewThread, OpenInterrupt, Outbox, PendingRow, RunEnd, RunRow, SnapshotRow, StepRow, ThreadDump,
    ThreadFilter, ThreadInfo, ThreadStatus, Waiting, Wanted, sealed,
};
use crate::clock::{self, Clock};
use crate::ids::{InterruptId, RunId, ThreadId};

/// Keeps threads durably.
///
/// Crash contract: each writing method is one atomic write. A crash before its future resolves leaves
/// either nothing or the whole write behind; after it resolved with `Ok`, the whole write is durable.
/// Methods that take a `fence` write nothing and return [`Error::Fenced`] when the token is not the
/// thread's newest; the check and the write are one statement.
#[async_trait]
pub trait Store: Send + Sync {
    /// Makes a thread at head 0, status idle, fence 0.
    async fn create(&self, new: NewThread) -> Result<ThreadInfo, Error>;

    /// Returns a thread's row.
    async fn info(&self, thread: ThreadId) -> Result<ThreadInfo, Error>;

    /// Takes the thread's lease for `ttl`, in the database's time, and raises its fencing token.
    ///
    /// Succeeds when no lease is held, it has run out, or `force` is set (the caller knows the holder
    /// is dead). Sets the status to busy. Otherwise [`Error::Busy`].
    async fn claim(
        &self,
        thread: ThreadId,
        owner: &str,
        ttl: Duration,
        force: bool,
    ) -> Result<ThreadInfo, Error>;

    /// Takes the lease as [`Store::claim`] does, but only while the fencing token is still `fence` and the
    /// thread is queued or busy.
    ///
    /// For a caller that decided by what it saw under that token: that the holder is dead, that the
    /// lease has run out, that the thread is queued. Otherwise [`Error::Busy`], and nothing is written.
    async fn claim_at(
        &self,
        thread: ThreadId,
        fence: u64,
        owner: &str,
        ttl: Duration,
        force: bool,
    ) -> Result<ThreadInfo, Error>;

    /// Lists threads at the top that are queued, or busy under a lease that has run out, or busy with a
    /// holder on the given machine; in the database's time.
    ///
    /// The queue of a store is this status alone: whatever is written with it survives a crash with it.
    async fn waiting(&self, wanted: &Wanted) -> Result<Vec<Waiting>, Error>;

    /// Extends the lease to `ttl` from now. Fenced.
    async fn renew(&self, thread: ThreadId, fence: u64, ttl: Duration) -> Result<(), Error>;

    /// Starts a run under the claim and returns it. Fenced.
    ///
    /// One that `owes_trace` is in the [`Outbox`] from then on, by the same write.
    async fn begin_run(
        &self,
        thread: ThreadId,
        fence: u64,
        run: RunId,
        owes_trace: bool,
    ) -> Result<RunRow, Error>;

    /// Ends a run, sets the thread's status and error, and gives the lease back, in one write. Fenced.
    ///
    /// A thread that was to be interrupted is queued instead when an answer came while it was busy. With
    /// the status queued, the workers' wake-up call is part of the same write.
    async fn end_run(
        &self,
        thread: ThreadId,
        fence: u64,
        run: RunId,
        end: RunEnd<'_>,
    ) -> Result<(), Error>;

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
        thread: ThreadId,
        fence: u64,
        row: &PendingRow,
        blobs: &[BlobRow],
    ) -> Result<(), Error>;

    /// Returns a text that a step of the thread names, of the thread at the top or of those it was forked from.
    ///
    /// Not checked against its hash: [`read_blob`](super::read_blob) does that. `None` where it is not kept.
    async fn blob(&self, thread: ThreadId, hash: &[u8; 32]) -> Result<Option<BlobRow>, Error>;

    /// Reads what is needed to stand the thread up at `at`, or at its head.
    async fn load(&self, thread: ThreadId, at: Option<u64>) -> Result<Loaded, Error>;

    /// Returns steps before `before` (or from the head), newest first, at most `limit`; shared history included.
    async fn history(
        &self,
        thread: ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<StepRow>, Error>;

    /// Keeps a snapshot; a second one for the same step is ignored. Not fenced: its content follows from the steps.
    async fn put_snapshot(&self, thread: ThreadId, snapshot: &SnapshotRow) -> Result<(), Error>;

    /// Records effects of one task: started tool calls, open interrupts, finished calls of any kind, notes. Fenced.
    ///
    /// One that is there already stays as it is.
    async fn record_effects(
        &self,
        thread: ThreadId,
        fence: u64,
        effects: &[EffectRow],
    ) -> Result<(), Error>;

    /// Records one effect, as [`Store::record_effects`] does.
    async fn record_effect(
        &self,
        thread: ThreadId,
        fence: u64,
        effect: &EffectRow,
    ) -> Result<(), Error> {
        self.record_effects(thread, fence, std::slice::from_ref(effect)).await
    }

    /// Records the end or a further attempt of an effect that is started or failed. Fenced.
    ///
    /// One that is done stays as it is: [`Error::UnknownEffect`], unless the settlement is the same one.
    async fn settle_effect(
        &self,
        thread: ThreadId,
        fence: u64,
        end: &EffectSettlement,
    ) -> Result<(), Error>;

    /// Returns the effects of one step, or of all, in order of step, task and number; own rows only.
    async fn effects(&self, thread: ThreadId, step: Option<u64>) -> Result<Vec<EffectRow>, Error>;

    /// Returns the effects of `step` and of any later one, which a crash may have left uncommitted.
    async fn effects_from(&self, thread: ThreadId, step: u64) -> Result<Vec<EffectRow>, Error> {
        let mut effects = self.effects(thread, None).await?;
        effects.retain(|effect| effect.step >= step);
        Ok(effects)
    }

    /// Returns the open interrupts of the thread and of its subgraphs' threads, oldest first.
    async fn open_interrupts(&self, thread: ThreadId) -> Result<Vec<OpenInterrupt>, Error>;

    /// Answers an interrupt; not fenced, since a person answers while nobody holds the thread.
    ///
    /// The same write queues the thread at the top if it is interrupted, wake-up call included, and marks
    /// it if it is busy, so that the end of its run queues it: an answer is never waited for in vain.
    ///
    /// [`Error::InterruptClosed`] on a second answer, [`Error::UnknownInterrupt`] when there is none.
    async fn answer(&self, interrupt: InterruptId, answer: &Encoded) -> Result<(), Error>;

    /// Appends a batch of events to the thread's log. Fenced.
    ///
    /// The batch takes the ids `first` to `first + count - 1`, which must follow the newest one; that is
    /// checked in the statement that writes, as is the fence. [`Error::EventGap`] otherwise, unless this very
    /// batch is there already: a repetition after a lost reply succeeds. A crash leaves the whole batch or
    /// nothing of it. On Postgres the same write tells anyone who listens, by the thread's id alone.
    async fn append_events(
        &self,
        thread: ThreadId,
        fence: u64,
        batch: &EventRow,
    ) -> Result<(), Error>;

    /// Returns how far the thread's log of events reaches; it does not go back when rows are dropped.
    async fn event_mark(&self, thread: ThreadId) -> Result<EventMark, Error>;

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

    /// Returns the runs of a thread, oldest first.
    async fn runs(&self, thread: ThreadId) -> Result<Vec<RunRow>, Error>;

    /// Makes a thread whose history up to `at` is shared with `source`, without copying a step.
    async fn fork(&self, source: ThreadId, at: u64, new: NewThread) -> Result<ThreadInfo, Error>;

    /// Lists threads, newest update first.
    async fn list(&self, filter: &ThreadFilter) -> Result<Vec<ThreadInfo>, Error>;

    /// Refuses a process that would write what anyone who encrypts this database could not read, or in the open.
    ///
    /// The newest threads tell whether encryption is in use; finding them reads the row of each thread, so this is
    /// for the start of a process. [`Error::Unsealed`] without a key that fits any of them.
    async fn check_keys(&self) -> Result<(), Error> {
        sealed::check(self, None).await
    }

    /// Counts the threads at the top by status; a status that none has may be missing.
    async fn count_threads(&self) -> Result<Vec<(ThreadStatus, u64)>, Error>;

    /// Deletes a thread, its subgraphs' threads and everything of them; forks keep the history they share.
    async fn delete(&self, thread: ThreadId) -> Result<(), Error>;

    /// Deletes a thread as [`Store::delete`] does, but only while it is as it was seen.
    ///
    /// For a caller that decided by what it saw: that nobody runs the thread, that it is old. Otherwise
    /// [`Error::Moved`], and nothing is deleted.
    async fn delete_as_seen(&self, seen: &ThreadInfo) -> Result<(), Error>;

    /// Drops steps, effects and snapshots older than the snapshot at `seq`, which must exist; forks keep theirs.
    async fn truncate(&self, thread: ThreadId, seq: u64) -> Result<(), Error>;

    /// Reads a whole thread; [`Error::Corrupt`] where [`Store::import`] would refuse it.
    async fn export(&self, thread: ThreadId) -> Result<ThreadDump, Error>;

    /// Writes a whole thread in one transaction; [`Error::ThreadExists`] when its id is taken.
    async fn import(&self, dump: &ThreadDump) -> Result<(), Error>;

    /// Returns the export cursor; none for a store that keeps none, whose undelivered traces are lost.
    fn outbox(&self) -> Option<&dyn Outbox> {
        None
    }

    /// Says where the data lies, for messages; never with a password.
    fn describe(&self) -> String;

    /// Returns the time by the clock that dates this store's rows.
    async fn now(&self) -> Result<DateTime<Utc>, Error> {
        Ok(clock::now())
    }

    /// Returns the clock that dates this store's rows; it has just dated one `told`.
    ///
    /// By default this machine's, as for a store that all its processes share a machine with.
    fn clock(&self, _told: DateTime<Utc>) -> Clock {
        Clock::default()
    }

    /// Returns the number of bytes above which deltas should be compressed for this store.
    fn compress_above(&self) -> usize {
        2048
    }

    /// Returns the number of bytes of deltas below which a snapshot does not pay for this store.
    fn snapshot_above(&self) -> usize {
        64 * 1024
    }

    /// Closes connections after what is under way has finished.
    async fn close(&self);
}
