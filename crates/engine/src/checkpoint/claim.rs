//! Who may write to a thread: a claim of its lease, and the fencing token that the claim gives.

use std::time::Duration;

use super::{Error, ThreadInfo};
use crate::ids::ThreadId;

/// The right to write to a thread: the fencing token of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fence {
    pub thread: ThreadId,
    pub token: u64,
}

impl Fence {
    /// Makes the fence of a thread that was claimed with this token.
    pub fn new(thread: ThreadId, token: u64) -> Self {
        Self { thread, token }
    }

    /// Refuses the token where another one is the thread's newest.
    pub(crate) fn check(self, current: u64) -> Result<(), Error> {
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
    pub thread: ThreadId,
    /// Only while this is the newest fencing token and the thread is queued or busy: for a caller that decided by what
    /// it saw under that token.
    pub seen: Option<u64>,
    pub owner: &'a str,
    /// How long the lease lasts without renewal, in the database's time.
    pub ttl: Duration,
    /// The holder is known to be dead.
    pub force: bool,
}

impl<'a> Claim<'a> {
    /// Claims a thread that nobody holds.
    pub fn new(thread: ThreadId, owner: &'a str, ttl: Duration) -> Self {
        Self { thread, seen: None, owner, ttl, force: false }
    }

    /// Claims it from a holder that is dead.
    #[must_use]
    pub fn forced(self) -> Self {
        Self { force: true, ..self }
    }
}
