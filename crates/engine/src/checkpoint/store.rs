//! What a store is: all of the traits in [`traits`](super::traits), and what it says of itself.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{Effects, Error, Events, Leases, Outbox, Questions, Steps, Threads, Transfer, sealed};
use crate::clock::{self, Clock};

/// Keeps threads durably.
///
/// Crash contract, which each of its traits spells out for itself: a writing method is one atomic write. A crash before
/// its future resolves leaves either nothing or the whole write behind; after it resolved with `Ok`, the whole write is
/// durable. What needs one part of a store takes that trait: any `&dyn Store` is one.
#[async_trait]
pub trait Store: Threads + Leases + Steps + Effects + Questions + Events + Transfer {
    /// Refuses a process that would write what anyone who encrypts this database could not read, or in the open.
    ///
    /// The newest threads tell whether encryption is in use; finding them reads the row of each thread, so this is
    /// for the start of a process. [`Error::Unsealed`] without a key that fits any of them.
    async fn check_keys(&self) -> Result<(), Error> {
        sealed::check(self, None).await
    }

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

    /// Closes connections after what is under way has finished.
    async fn close(&self);
}
