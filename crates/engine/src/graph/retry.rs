//! How often and how fast a failed node is tried again.

use std::time::Duration;

/// How often and how fast a failed node is tried again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Attempts in all; 1 means no retry.
    pub max_attempts: u32,
    /// Wait before the second attempt.
    pub initial: Duration,
    /// The factor by which each further wait is longer than the previous one.
    pub factor: f64,
    /// Longest wait.
    pub max_delay: Duration,
}

impl RetryPolicy {
    /// Tries once.
    pub const NONE: Self =
        Self { max_attempts: 1, initial: Duration::ZERO, factor: 1.0, max_delay: Duration::ZERO };

    /// Tries so often in all, and waits a second, then twice as long each time, at most a minute.
    #[must_use]
    pub fn attempts(max_attempts: u32) -> Self {
        Self { max_attempts, ..Self::default() }
    }

    /// Returns the wait after a failed attempt (1-based), or `None` when it was the last.
    pub fn delay_after(&self, attempt: u32) -> Option<Duration> {
        if attempt >= self.max_attempts {
            return None;
        }
        let factor = self.factor.max(1.0).powi(attempt.saturating_sub(1).min(64).cast_signed());
        let seconds = (self.initial.as_secs_f64() * factor).min(self.max_delay.as_secs_f64());
        Some(Duration::from_secs_f64(seconds))
    }
}

impl Default for RetryPolicy {
    /// Tries three times in all, after a second and after two.
    fn default() -> Self {
        Self {
            max_attempts: 3,
            initial: Duration::from_secs(1),
            factor: 2.0,
            max_delay: Duration::from_secs(60),
        }
    }
}
