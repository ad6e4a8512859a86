//! Remembers whose traces have not arrived yet, so that a crash or a collector that is down loses none.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::Error;
use crate::ids::ThreadId;

/// Runs of a thread whose traces are to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingExport {
    pub thread: ThreadId,
    /// Number of the first run that was not delivered.
    pub from_run: u32,
    /// Number of the last run that is due.
    pub to_run: u32,
    pub since: DateTime<Utc>,
}

/// The export cursor: one row per thread with a pending export, none for the others.
///
/// It is written with the beginning of a run ([`Leases::begin_run`](super::Leases::begin_run)) and after a
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
