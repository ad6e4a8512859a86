//! The only place of this crate that reads the time or waits for it.
#![expect(clippy::disallowed_methods, reason = "this is the one place that may read the clock")]

use std::time::{Duration, Instant};

pub(crate) fn monotonic() -> Instant {
    Instant::now()
}

pub(crate) async fn sleep(duration: Duration) {
    tokio::time::sleep(duration).await;
}
