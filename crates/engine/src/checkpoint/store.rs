//! The interface of a store: all of the traits in [`traits`](super::traits), and facts about the store itself.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{Effects, Error, Events, Leases, Outbox, Questions, Steps, Threads, Transfer, sealed};
use crate::clock::{self, Clock};

/// Keeps threads durably.
///
/// Crash contract, which each of its traits spells out for itself: a writing method is one atomic write. A crash before
/// its future resolves leaves either no change or the whole write; after it resolved with `Ok`, the whole write is
/// durable. Code that needs one part of a store takes the trait of that part: any `&dyn Store` implements it.
#[async_trait]
pub trait Store: Threads + Leases + Steps + Effects + Questions + Events + Transfer {
    /// Refuses a process that would write what anyone who encrypts this database could not read, or in the open.
    ///
    /// The newest threads show whether encryption is in use. Finding them reads the row of each thread, so call this at
    /// the start of a process. [`Error::Unsealed`] without a key that fits any of them.
    async fn check_keys(&self) -> Result<(), Error> {
        sealed::check(self, None).await
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

    /// Closes connections after their active statements have finished.
    async fn close(&self);
}
