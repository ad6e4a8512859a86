//! Counts what this process sends to its databases, so that tests notice when it grows.

use std::sync::atomic::{AtomicU64, Ordering};

static SENT: AtomicU64 = AtomicU64::new(0);

/// Returns how often this process has waited for a database so far: for a server's answer, or for the thread of a SQLite
/// connection.
pub fn round_trips() -> u64 {
    SENT.load(Ordering::Relaxed)
}

pub(crate) fn note() {
    SENT.fetch_add(1, Ordering::Relaxed);
}
