//! What a thread has done: committed steps, what unfinished ones have already, and the texts that they name.

use async_trait::async_trait;

use super::super::{
    BlobRow, Commit, Error, Fence, Loaded, PendingRow, SnapshotRow, StateCache, StepRow,
};
use crate::ids::ThreadId;

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
    /// Not checked against its hash: [`read_blob`](super::super::read_blob) does that. `None` where it is not kept.
    async fn blob(&self, thread: ThreadId, hash: &[u8; 32]) -> Result<Option<BlobRow>, Error>;
}
