//! The logs of what runs told.

use std::time::Duration;

use async_trait::async_trait;

use super::super::{Error, EventPosition, EventRow, Fence};
use crate::ids::ThreadId;

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
