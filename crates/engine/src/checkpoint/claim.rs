//! The right to write to a thread: a claim of its lease, and the fencing token of the claim.

use std::time::Duration;

use super::{Error, EventPosition, Result, ThreadInfo};
use crate::ids::{RunId, ThreadId};

/// The right to write to a thread: the fencing token of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fence {
    /// The thread.
    pub thread: ThreadId,
    /// The fencing token: a number that grows with each claim of the thread.
    pub token: u64,
}

impl Fence {
    /// Makes the fence of a thread that was claimed with this token.
    pub fn new(thread: ThreadId, token: u64) -> Self {
        Self { thread, token }
    }

    /// Refuses the token where another one is the thread's newest.
    pub(crate) fn check(self, current: u64) -> Result<()> {
        if current == self.token { Ok(()) } else { Err(self.stale(current)) }
    }

    /// Refuses the token, which was stale when a statement looked.
    pub(super) fn stale(self, current: u64) -> Error {
        Error::Fenced { thread: self.thread, token: self.token, current }
    }
}

impl From<&ThreadInfo> for Fence {
    /// Takes the newest token of a thread as it was read.
    fn from(info: &ThreadInfo) -> Self {
        Self::new(info.id, info.fence)
    }
}

/// A claim of a thread's lease.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The thread.
    pub thread: ThreadId,
    /// Condition of the claim: this is the newest fencing token and the thread is queued or busy. For a caller that
    /// decided by the status under that token.
    pub seen: Option<u64>,
    /// Name of the new holder, from [`owner_name`](crate::runner::owner_name).
    pub owner: &'a str,
    /// How long the lease lasts without renewal, in the database's time.
    pub ttl: Duration,
    /// The holder is known to be dead.
    pub force: bool,
}

impl<'a> Claim<'a> {
    /// Claims a thread without a holder.
    pub fn new(thread: ThreadId, owner: &'a str, ttl: Duration) -> Self {
        Self { thread, seen: None, owner, ttl, force: false }
    }

    /// Claims it from a holder that is dead.
    #[must_use]
    pub fn forced(self) -> Self {
        Self { force: true, ..self }
    }
}

/// A thread that was claimed, and the run that began under the claim.
#[derive(Clone, Debug)]
pub struct Begun {
    /// The thread as claimed.
    pub info: ThreadInfo,
    /// The run, dated by the clock that dates the rows of the store.
    pub run: RunId,
    /// How far the thread's log of events reaches.
    pub events: EventPosition,
}
