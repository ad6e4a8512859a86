//! The only place of this crate that waits for time.
#![expect(clippy::disallowed_methods, reason = "this is the one place that may wait")]

use std::time::Duration;

pub(crate) async fn sleep(duration: Duration) {
    tokio::time::sleep(duration).await;
}
