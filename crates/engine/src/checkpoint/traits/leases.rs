//! Who may write: claims, leases and the runs under them.

use std::time::Duration;

use async_trait::async_trait;

use super::super::{Claim, Error, Fence, RunEnd, RunRow, ThreadInfo, Waiting, Wanted};
use crate::ids::{RunId, ThreadId};

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
    async fn waiting(&self, wanted: &Wanted) -> Result<Vec<Waiting>, Error>;

    /// Extends the lease to `ttl` from now, unless it was given back. Fenced.
    async fn renew(&self, fence: Fence, ttl: Duration) -> Result<(), Error>;

    /// Starts a run under the claim and returns it. Fenced.
    ///
    /// One that `exports` its trace is in the [`Outbox`](super::super::Outbox) from then on, by the same write.
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
