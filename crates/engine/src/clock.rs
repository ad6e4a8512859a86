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
    if fail::has_failpoints() {
        Utc::now() + TimeDelta::microseconds(SKEW.load(Ordering::Relaxed))
    } else {
        Utc::now()
    }
}

/// Puts this process's wall clock wrong, in a build with failpoints; elsewhere it does nothing.
pub fn skew(micros: i64) {
    SKEW.store(micros, Ordering::Relaxed);
}

/// A wall clock: this machine's, or one that was set by another, such as a database's, and runs by itself from then on.
///
/// Machines' clocks disagree; what several of them write into one history is dated by the clock they share.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// What it was told, and when; none for this machine's.
    given: Option<(DateTime<Utc>, Instant)>,
}

impl Clock {
    /// Sets a clock by a time that was just told.
    ///
    /// However long that was under way: this clock is behind the other one by as much and never ahead of
    /// it, so that what it dates lies after the time it was told and before whatever the other one dates later.
    pub fn set_by(given: DateTime<Utc>) -> Self {
        Self { given: Some((given, monotonic())) }
    }

    /// Returns the wall-clock time in UTC.
    pub fn now(&self) -> DateTime<Utc> {
        self.given.map_or_else(now, |(given, at)| given + at.elapsed())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_runs_on_from_what_it_was_told() {
        let given = now() + TimeDelta::hours(1);
        let clock = Clock::set_by(given);
        let first = clock.now();
        let second = clock.now();
        assert!(given <= first && first <= second && second < given + TimeDelta::minutes(30));
    }
}
