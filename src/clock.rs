//! The only place that reads the time or waits for it.
//!
//! Clippy forbids `SystemTime::now`, `Instant::now` and `tokio::time::sleep` elsewhere.
#![expect(clippy::disallowed_methods, reason = "this is the one room that may read the clock")]

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

/// Returns the wall-clock time in UTC.
pub fn now() -> DateTime<Utc> {
    Utc::now()
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
