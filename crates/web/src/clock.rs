//! The only place of the crate that reads the time or waits for it.

use std::time::{Duration, Instant};

/// Returns the present moment of a clock that never goes back.
#[expect(
    clippy::disallowed_methods,
    reason = "a library of its own has its own clock, and this is it"
)]
pub fn monotonic() -> Instant {
    Instant::now()
}

/// Waits.
#[expect(
    clippy::disallowed_methods,
    reason = "a library of its own has its own clock, and this is it"
)]
pub async fn sleep(duration: Duration) {
    tokio::time::sleep(duration).await;
}
