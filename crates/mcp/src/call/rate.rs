//! Bounds how many calls a server gets over time; further ones wait their turn.

use std::time::Duration;

use governor::{
    DefaultDirectRateLimiter, Quota, RateLimiter,
    clock::{Clock, DefaultClock},
};

use crate::configuration::RateLimit;
use perihelion_engine::clock;

/// The rate limit of one server.
pub(crate) struct Rate {
    limiter: DefaultDirectRateLimiter,
    /// Reads the limiter's own time.
    clock: DefaultClock,
}

impl Rate {
    pub fn new(limit: RateLimit) -> Option<Self> {
        let quota = Quota::with_period(limit.per / limit.calls.get())?.allow_burst(limit.calls);
        let clock = DefaultClock::default();
        Some(Self { limiter: RateLimiter::direct_with_clock(quota, clock.clone()), clock })
    }

    /// Waits until a call may be made, or returns false if that would be later than `patience` from now.
    pub async fn ready(&self, patience: Duration) -> bool {
        let started = clock::monotonic();
        loop {
            let Err(early) = self.limiter.check() else { return true };
            let wait = early.wait_time_from(self.clock.now());
            if started.elapsed() + wait > patience {
                return false;
            }
            clock::sleep(wait.max(Duration::from_millis(1))).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    #[tokio::test]
    async fn calls_beyond_the_rate_are_told_when_they_cannot_wait_that_long() {
        let calls = NonZeroU32::new(2).unwrap();
        let rate = Rate::new(RateLimit { calls, per: Duration::from_secs(3600) }).unwrap();
        assert!(rate.ready(Duration::ZERO).await && rate.ready(Duration::ZERO).await);
        assert!(!rate.ready(Duration::from_secs(60)).await);
        let often = Rate::new(RateLimit { calls, per: Duration::from_millis(20) }).unwrap();
        let started = clock::monotonic();
        for _ in 0..12 {
            assert!(often.ready(Duration::from_secs(60)).await);
        }
        // Two at once, the others every 10 ms.
        assert!(started.elapsed() >= Duration::from_millis(99), "{:?}", started.elapsed());
    }
}
