//! Threads as such: made, forked, looked up, listed, shortened, deleted.

use async_trait::async_trait;

use super::super::{Error, NewThread, ThreadFilter, ThreadInfo, ThreadStatus};
use crate::ids::ThreadId;

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
