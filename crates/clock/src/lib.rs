//! The only place that reads the time or waits for it.
//!
//! Enter at [`now`], [`monotonic`] and [`sleep`]. Invariant: Clippy forbids `SystemTime::now`, `Instant::now` and
//! `tokio::time::sleep` elsewhere.
#![expect(clippy::disallowed_methods, reason = "this is the one room that may read the clock")]

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;

/// How far [`now`] is off, in microseconds; only ever set by tests of clocks that disagree.
static SKEW: AtomicI64 = AtomicI64::new(0);

pub fn now() -> DateTime<Utc> {
    if cfg!(feature = "failpoints") {
        Utc::now() + TimeDelta::microseconds(SKEW.load(Ordering::Relaxed))
    } else {
        Utc::now()
    }
}

/// Sets this process's wall clock wrong, in a build with failpoints; in other builds it has no effect.
pub fn skew(micros: i64) {
    SKEW.store(micros, Ordering::Relaxed);
}

/// A wall clock: the clock of this machine, or one that was set once from another clock, such as a database's, and then
/// runs independently.
///
/// Clocks of machines disagree, so the events that several machines write into one history are dated by the clock that
/// they share.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// The reading of the other clock and when it arrived; `None` for the clock of this machine.
    given: Option<(DateTime<Utc>, Instant)>,
}

impl Clock {
    /// Sets a clock by a time that has just arrived from another one.
    ///
    /// This clock is behind the other one by the transmission time and never ahead of it. Its dates are therefore later
    /// than the reading, and earlier than later dates of the other clock.
    pub fn set_by(given: DateTime<Utc>) -> Self {
        Self { given: Some((given, monotonic())) }
    }

    pub fn now(&self) -> DateTime<Utc> {
        self.given.map_or_else(now, |(given, at)| given + at.elapsed())
    }
}

pub fn monotonic() -> Instant {
    Instant::now()
}

/// Waits for a duration; a zero duration is not rounded up to the next tick of the timer.
pub async fn sleep(duration: Duration) {
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}

/// A rate limit: some at once, and then one per period.
#[derive(Debug)]
pub struct Rate {
    period: Duration,
    /// How far the next one may be ahead of its turn.
    burst: Duration,
    /// The next one's turn when all are one period apart.
    turn: Mutex<Option<Instant>>,
}

impl Rate {
    /// Makes a limit of `most` within `per`.
    pub fn new(most: NonZeroU32, per: Duration) -> Self {
        let period = per / most.get();
        Self { period, burst: period * (most.get() - 1), turn: Mutex::default() }
    }

    /// Counts one more.
    ///
    /// # Errors
    /// How long it is until another one is within the limit; this one is not counted.
    pub fn count(&self) -> Result<(), Duration> {
        let mut turn = self.turn.lock();
        let now = monotonic();
        let at = turn.map_or(now, |turn| turn.max(now));
        match (at - now).saturating_sub(self.burst) {
            Duration::ZERO => {
                *turn = Some(at + self.period);
                Ok(())
            }
            wait => Err(wait),
        }
    }

    /// Waits until one more is within the limit and counts it, or returns false if that takes longer than `patience`.
    pub async fn ready(&self, patience: Duration) -> bool {
        let started = monotonic();
        while let Err(wait) = self.count() {
            if started.elapsed() + wait > patience {
                return false;
            }
            sleep(wait.max(Duration::from_millis(1))).await;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_allows_a_burst_and_then_one_per_period() {
        let most = NonZeroU32::new(3).unwrap();
        let rate = Rate::new(most, Duration::from_secs(3600));
        assert!((0..3).all(|_| rate.count().is_ok()));
        for _ in 0..2 {
            let wait = rate.count().unwrap_err();
            assert!(wait <= Duration::from_secs(1200), "what is refused is not counted: {wait:?}");
        }
        // A period later there is room for one.
        let later = rate.turn.lock().map(|turn| turn - rate.period);
        *rate.turn.lock() = later;
        assert!(rate.count().is_ok() && rate.count().is_err());
        // After a long rest the burst is no larger than before.
        *rate.turn.lock() = Some(monotonic());
        assert!((0..3).all(|_| rate.count().is_ok()) && rate.count().is_err());
        let free = Rate::new(most, Duration::ZERO);
        assert!((0..1_000).all(|_| free.count().is_ok()));
    }

    #[tokio::test]
    async fn calls_beyond_a_rate_wait_their_turn_or_are_refused() {
        let most = NonZeroU32::new(2).unwrap();
        let rate = Rate::new(most, Duration::from_secs(3600));
        assert!(rate.ready(Duration::ZERO).await && rate.ready(Duration::ZERO).await);
        assert!(!rate.ready(Duration::from_secs(60)).await);
        let often = Rate::new(most, Duration::from_millis(20));
        let started = monotonic();
        for _ in 0..12 {
            assert!(often.ready(Duration::from_secs(60)).await);
        }
        // Two at once, the others every 10 ms.
        assert!(started.elapsed() >= Duration::from_millis(99), "{:?}", started.elapsed());
    }

    #[test]
    fn a_clock_that_was_set_continues_from_that_time() {
        let given = now() + TimeDelta::hours(1);
        let clock = Clock::set_by(given);
        let first = clock.now();
        let second = clock.now();
        assert!(given <= first && first <= second && second < given + TimeDelta::minutes(30));
    }
}
