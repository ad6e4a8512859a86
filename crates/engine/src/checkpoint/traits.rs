//! The parts of a store: a few traits with one purpose each, and the state that a crash leaves.
//!
//! [`Store`] is all of them but [`Outbox`]. Invariant: a writing method is one atomic write, and a method
//! that takes a `fence` changes no row unless the token is the thread's newest. Deliberately absent: statements; each
//! store has its own, or the ones that both databases share.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    Archive, Archiving, Begun, BlobRow, Claim, Commit, EffectRow, EffectSettlement, Encoded, Error,
    EventPosition, EventRow, Fence, Keyring, Loaded, MemoryStore, NewThread, OpenInterrupt,
    PendingExport, PendingRow, PostgresStore, RunEnd, RunRow, SealedStore, SnapshotRow,
    SqliteStore, StateCache, StepRow, ThreadDump, ThreadFilter, ThreadInfo, ThreadStatus, Waiting,
    WorkFilter, sealed,
};
use crate::clock::{self, Clock};
use crate::ids::{InterruptId, RunId, ThreadId};
use chrono::{DateTime, Utc};
use perihelion_database::address::{self, Address};
use std::sync::Arc;

/// Makes, finds and removes threads.
///
/// Crash contract: a thread is stored completely or not at all. The same applies to the rows that a fork shares, or
/// receives when its origin is deleted. These methods need no fencing token: to remove a thread, pass the status that
/// you saw; a process that runs it finds it deleted.
///
/// # Errors
/// [`Error::UnknownThread`] for a missing thread, [`Error::ThreadExists`] for an ID that exists, and [`Error::Database`].
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

    /// Counts the threads at the top by status; a status without threads may be missing.
    async fn count_threads(&self) -> Result<Vec<(ThreadStatus, u64)>, Error>;

    /// Deletes a thread, its subgraphs' threads and everything of them; forks keep the history they share.
    async fn delete(&self, thread: ThreadId) -> Result<(), Error>;

    /// Deletes a thread as [`Threads::delete`] does, but only while it is as it was seen.
    ///
    /// For a caller that decided by the status that it saw, such as that the thread is idle or old. Otherwise
    /// [`Error::Moved`], and the thread stays.
    async fn delete_as_seen(&self, seen: &ThreadInfo) -> Result<(), Error>;

    /// Drops steps, effects and snapshots older than the snapshot at `seq`, which must exist; forks keep theirs.
    ///
    /// Each remaining return to an earlier step needs a snapshot too, since that step may be dropped: otherwise
    /// [`Error::BareReturn`], and all steps stay.
    async fn truncate(&self, thread: ThreadId, seq: u64) -> Result<(), Error>;
}

/// Gives a thread to one writer at a time.
///
/// Crash contract: an acknowledged claim is stored with its token. An unacknowledged claim may be stored: its lease
/// expires. A run that was begun and never ended stays so, with its thread busy, until the next claim. The fenced
/// methods write no row and return [`Error::Fenced`] if the token is not the thread's newest; the check and the write
/// are one.
///
/// # Errors
/// [`Error::UnknownThread`], [`Error::Busy`] and [`Error::Fenced`] as described, and [`Error::Database`].
#[async_trait]
pub trait Leases: Send + Sync {
    /// Takes the thread's lease, raises its fencing token and sets the status to busy.
    ///
    /// Succeeds if there is no lease, it has expired, or the claim is forced, and if the token is still the one in
    /// `seen`, if set. Otherwise [`Error::Busy`], without a write.
    async fn claim(&self, claim: Claim<'_>) -> Result<ThreadInfo, Error>;

    /// Lists threads at the top that are queued, or busy under a lease that has run out, or busy with a
    /// holder on the given machine; in the database's time.
    ///
    /// The queue of a store is this status alone, so it survives a crash with the other columns of the write.
    async fn waiting(&self, wanted: &WorkFilter) -> Result<Vec<Waiting>, Error>;

    /// Extends the lease to `ttl` from now, unless it was given back. Fenced.
    async fn renew(&self, fence: Fence, ttl: Duration) -> Result<(), Error>;

    /// Starts a run under the claim and returns it. Fenced.
    ///
    /// A run that `exports` its trace is in the [`Outbox`] from then on, by the same write.
    async fn begin_run(&self, fence: Fence, run: RunId, exports: bool) -> Result<RunRow, Error>;

    /// Ends a run, sets the thread's status and error, and gives the lease back, in one write. Fenced.
    ///
    /// A thread that would become interrupted is queued instead if an answer arrived while it was busy. With the status
    /// queued, the workers' wake-up call is part of the same write. A run that has ended does not change: the call can
    /// be repeated, and later changes stay.
    async fn end_run(&self, fence: Fence, run: RunId, end: RunEnd<'_>) -> Result<(), Error>;

    /// Returns the runs of a thread, oldest first.
    async fn runs(&self, thread: ThreadId) -> Result<Vec<RunRow>, Error>;
}

/// The steps of threads.
///
/// Crash contract: a step is stored together with the head, the status and its texts, or not at all; after `Ok` it is
/// durable. The fenced methods write no row and return [`Error::Fenced`] if the token is not the thread's newest; the
/// check and the write are one statement.
///
/// # Errors
/// [`Error::UnknownThread`], [`Error::UnknownStep`], [`Error::Conflict`] for a step that does not follow the head,
/// [`Error::Fenced`], [`Error::Damaged`] for unreadable rows, and [`Error::Database`].
#[async_trait]
pub trait Steps: Send + Sync {
    /// Commits one step: row, head move, status and fencing check in one statement, one round trip.
    ///
    /// After a lost reply (the connection broke), the store reads the head back and compares the hash. `Ok` therefore
    /// means committed, and an error other than a database failure means not committed.
    ///
    /// The texts of the step are part of the same write; a text that is stored already stays, with the earlier of the
    /// two steps.
    async fn commit(&self, commit: &Commit) -> Result<(), Error>;

    /// Stores the write of a finished task while other tasks of its step still run, with its texts. Fenced, idempotent
    /// per task.
    async fn save_pending(
        &self,
        fence: Fence,
        row: &PendingRow,
        blobs: &[BlobRow],
    ) -> Result<(), Error>;

    /// Reads the rows that restore the thread at `at`, or at its head.
    async fn load(&self, thread: ThreadId, at: Option<u64>) -> Result<Loaded, Error>;

    /// Reads the rows that a reader with the state at step `since` needs: that step and later ones, and no snapshot.
    async fn load_since(
        &self,
        thread: ThreadId,
        since: u64,
        at: Option<u64>,
    ) -> Result<Loaded, Error>;

    /// Returns the cache of states that were restored from this store.
    fn state_cache(&self) -> &StateCache;

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
    /// Not checked against its hash: [`read_blob`](super::read_blob) does that. `None` if it is not stored.
    async fn blob(&self, thread: ThreadId, hash: &[u8; 32]) -> Result<Option<BlobRow>, Error>;
}

/// Keeps the effects of a thread's tasks.
///
/// Crash contract: the next lease holder finds each recorded effect; an effect whose end was lost has the status
/// `started`. The writing methods write no row and return [`Error::Fenced`] if the token is not the thread's newest;
/// the check and the write are one statement.
///
/// # Errors
/// [`Error::Fenced`] and [`Error::UnknownEffect`] as described, [`Error::Damaged`] for unreadable rows, and
/// [`Error::Database`].
#[async_trait]
pub trait Effects: Send + Sync {
    /// Records effects of one task: started tool calls, open interrupts, finished calls of any kind, notes. Fenced.
    ///
    /// An effect that exists stays unchanged.
    async fn record_effects(&self, fence: Fence, effects: &[EffectRow]) -> Result<(), Error>;

    /// Records the end or a further attempt of an effect that is started or failed. Fenced.
    ///
    /// An effect that is done stays unchanged: [`Error::UnknownEffect`], unless the settlement is the same one.
    async fn settle_effect(&self, fence: Fence, end: &EffectSettlement) -> Result<(), Error>;

    /// Returns the effects of one step, or of all steps, in order of step, task and number; without shared history.
    async fn effects(&self, thread: ThreadId, step: Option<u64>) -> Result<Vec<EffectRow>, Error>;

    /// Returns the effects of `step` and of any later one; after a crash these can be uncommitted.
    async fn effects_from(&self, thread: ThreadId, step: u64) -> Result<Vec<EffectRow>, Error>;
}

/// Keeps open interrupts, which are effects, and takes their answers.
///
/// Crash contract: an answer that was acknowledged is there, and its thread is queued or will be by the end of its run;
/// a second one is refused.
///
/// # Errors
/// [`Error::UnknownInterrupt`] and [`Error::InterruptClosed`] as described, and [`Error::Database`].
#[async_trait]
pub trait Questions: Send + Sync {
    /// Returns the open interrupts of the thread and of its subgraphs' threads, oldest first.
    async fn open_interrupts(&self, thread: ThreadId) -> Result<Vec<OpenInterrupt>, Error>;

    /// Returns the thread at the top below which an open interrupt is asked; `None` when it is not open.
    async fn asked_below(&self, interrupt: InterruptId) -> Result<Option<ThreadId>, Error>;

    /// Answers an interrupt; not fenced, because a person answers while the thread has no holder.
    ///
    /// The same write queues the thread at the top, with a wake-up call, if it is interrupted. If it is busy, the write
    /// marks it, so that the end of its run queues it.
    ///
    /// [`Error::InterruptClosed`] on a second answer, [`Error::UnknownInterrupt`] for an unknown ID.
    async fn answer(&self, interrupt: InterruptId, answer: &Encoded) -> Result<(), Error>;
}

/// Keeps a log of events for each thread.
///
/// Crash contract: a batch is there whole or not at all, and the log has no gap. Appending writes no row and returns
/// [`Error::Fenced`] if the token is not the thread's newest; the check and the write are one statement.
///
/// # Errors
/// [`Error::Fenced`], [`Error::EventGap`] for a batch that does not follow the log, and [`Error::Database`].
#[async_trait]
pub trait Events: Send + Sync {
    /// Appends a batch of events to the thread's log. Fenced.
    ///
    /// The batch takes the ids `first` to `first + count - 1`, which must follow the newest one; that is checked in the
    /// statement that writes, as is the fence. [`Error::EventGap`] otherwise, unless this very batch is there already:
    /// a repetition after a lost reply succeeds. After a crash, the batch is stored completely or not at all. On
    /// Postgres the same write notifies all listeners, with the thread's ID alone.
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
    /// Events of busy and queued threads stay. In the database's time.
    async fn prune_events(&self, kept: Duration, most: u32) -> Result<u64, Error>;
}

/// Reads and writes threads as a whole.
///
/// Crash contract: an export changes no row and shows one moment; an import stores the thread with its subgraphs'
/// threads, or no row.
///
/// # Errors
/// [`Error::UnknownThread`], [`Error::Corrupt`], [`Error::ThreadExists`], [`Error::Import`] and [`Error::Database`].
#[async_trait]
pub trait Transfer: Send + Sync {
    /// Reads a whole thread; [`Error::Corrupt`] where [`Transfer::import`] would refuse it.
    async fn export(&self, thread: ThreadId) -> Result<ThreadDump, Error>;

    /// Writes a whole thread in one transaction; [`Error::ThreadExists`] if its ID exists.
    async fn import(&self, dump: &ThreadDump) -> Result<(), Error>;
}

/// The export cursor: one row per thread with a pending export.
///
/// It is written with the beginning of a run ([`Leases::begin_run`]) and after a
/// delivery, never by a step. A crash before `paid` delivers the same spans, under the same ids, again.
///
/// # Errors
/// [`Error::Database`].
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Returns the pending exports, oldest first, at most `limit`; those `after` one, or from the oldest.
    async fn pending(
        &self,
        after: Option<&PendingExport>,
        limit: u32,
    ) -> Result<Vec<PendingExport>, Error>;

    /// Returns how many threads have something pending.
    async fn count(&self) -> Result<u64, Error>;

    /// Returns the pending export of a thread.
    async fn pending_of(&self, thread: ThreadId) -> Result<Option<PendingExport>, Error>;

    /// Notes that all runs up to this number were delivered as they will stay.
    async fn paid(&self, thread: ThreadId, run: u32) -> Result<(), Error>;
}

/// Keeps threads durably.
///
/// Crash contract, which each of its traits spells out for itself: a writing method is one atomic write. A crash before
/// its future resolves leaves either no change or the whole write; after it resolved with `Ok`, the whole write is
/// durable. Code that needs one part of a store takes the trait of that part: any `&dyn Store` implements it.
#[async_trait]
pub trait Store:
    Threads + Leases + Steps + Effects + Questions + Events + Transfer + Archiving
{
    /// Refuses a process that would write what anyone who encrypts this database could not read, or in the open.
    ///
    /// The newest threads show whether encryption is in use. Finding them reads the row of each thread, so call this at
    /// the start of a process. [`Error::Unsealed`] without a key that fits any of them.
    async fn check_keys(&self) -> Result<(), Error> {
        sealed::check(self, None).await
    }

    /// Takes a thread's lease as [`Leases::claim`] does, and starts a run under it as [`Leases::begin_run`] does; a database
    /// does both in one write.
    async fn claim_and_begin(&self, claim: Claim<'_>, exports: bool) -> Result<Begun, Error> {
        let info = self.claim(claim).await?;
        let run = RunId::begun_at(info.updated_at);
        self.begin_run(Fence::from(&info), run, exports).await?;
        let events = self.event_position(info.id).await?;
        Ok(Begun { info, run, events })
    }

    /// Returns the export cursor; `None` for a store without one, whose undelivered traces are lost.
    fn outbox(&self) -> Option<&dyn Outbox> {
        None
    }

    /// Returns the location of the data, for messages; never with a password.
    fn describe(&self) -> String;

    /// Returns the time by the clock that dates this store's rows.
    async fn now(&self) -> Result<DateTime<Utc>, Error> {
        Ok(clock::now())
    }

    /// Returns the clock that dates this store's rows; `given` is the time that it just gave to a row.
    ///
    /// By default this machine's, as for a store that all its processes share a machine with.
    fn clock(&self, _given: DateTime<Utc>) -> Clock {
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

    /// Closes connections after their active statements have finished.
    async fn close(&self);
}

/// Opens the store an address names, migrating it when needed.
///
/// `memory:` keeps threads for the life of the process, `sqlite:PATH` or a bare path is a file (made
/// when missing), `postgres://` and `postgresql://` name a server.
///
/// # Errors
/// [`Error::Database`] for an address of another form or a database that cannot be opened, and for a database that a
/// newer version migrated.
pub async fn open(url: &str) -> Result<Arc<dyn Store>, Error> {
    open_with(url, None, None).await
}

/// Opens the store of an address, with encryption if there are keys, and with the archive of its threads.
///
/// # Errors
/// As [`open`].
pub async fn open_with(
    url: &str,
    keys: Option<Keyring>,
    archive: Option<Archive>,
) -> Result<Arc<dyn Store>, Error> {
    let store: Arc<dyn Store> = match address::read(url)? {
        Address::Memory => Arc::new(MemoryStore::new()),
        Address::Server => Arc::new(PostgresStore::open(url).await?.archiving_to(archive)),
        Address::File(_) => Arc::new(SqliteStore::open(url).await?.archiving_to(archive)),
    };
    Ok(match keys {
        None => store,
        Some(keys) => Arc::new(SealedStore::new(store, keys)),
    })
}
