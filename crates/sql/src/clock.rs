//! The only place of this crate that reads the time.

use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "this crate stands below the program's clock")]
pub fn monotonic() -> Instant {
    Instant::now()
}

pub fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(monotonic().duration_since(since).as_millis()).unwrap_or(u64::MAX)
}
