//! The only place that reads the time or waits for it.
//!
//! Clippy forbids `SystemTime::now`, `Instant::now` and `tokio::time::sleep` elsewhere.
#![expect(clippy::disallowed_methods, reason = "this is the one room that may read the clock")]

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};

/// How far [`now`] is off, in microseconds; only ever set by tests of clocks that disagree.
static SKEW: AtomicI64 = AtomicI64::new(0);

/// Returns the wall-clock time in UTC.
pub fn now() -> DateTime<Utc> {
    match fail::has_failpoints() {
        true => Utc::now() + TimeDelta::microseconds(SKEW.load(Ordering::Relaxed)),
        false => Utc::now(),
    }
}

/// Puts this process's wall clock wrong, in a build with failpoints; elsewhere it does nothing.
pub fn skew(micros: i64) {
    SKEW.store(micros, Ordering::Relaxed);
}

/// Returns a monotonic instant for measuring durations.
pub fn monotonic() -> Instant {
    Instant::now()
}

/// Waits for a duration; none at all is not rounded up to the timer's next tick.
pub async fn sleep(duration: Duration) {
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}
