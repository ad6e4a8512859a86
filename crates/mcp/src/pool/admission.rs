//! Admits calls to one server: a few at a time, at its rate, and none while its circuit breaker is open.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::configuration::{BreakerPolicy, ServerConfig};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use perihelion_clock::{self as clock, Rate};

pub(super) struct Admission {
    breaker: Mutex<Breaker>,
    rate: Option<Rate>,
    permits: Semaphore,
    most: usize,
    patience: Duration,
    /// The server asks questions during calls, so only one can be in flight, to match its questions.
    one_by_one: AtomicBool,
    /// Tasks that have not ended, and until when the server is in use for them.
    tasks: Mutex<HashMap<String, Instant>>,
    task_timeout: Duration,
    last_used: Mutex<Instant>,
}

impl Admission {
    pub fn new(config: &ServerConfig) -> Self {
        Self {
            breaker: Mutex::new(Breaker::new(config.breaker)),
            rate: config.rate_limit.map(|limit| Rate::new(limit.calls, limit.per)),
            permits: Semaphore::new(config.max_concurrent_calls),
            most: config.max_concurrent_calls,
            patience: config.tool_total_timeout,
            one_by_one: AtomicBool::new(false),
            tasks: Mutex::default(),
            task_timeout: config.task_timeout,
            last_used: Mutex::new(clock::monotonic()),
        }
    }

    /// Waits until fewer than the most calls are in flight and the rate allows one more.
    pub async fn turn(
        &self,
        closed: &CancellationToken,
    ) -> Result<SemaphorePermit<'_>, &'static str> {
        let started = clock::monotonic();
        let room = if self.one_by_one.load(Ordering::Relaxed) { self.all() } else { 1 };
        let Ok(Ok(permit)) = timeout(self.patience, self.permits.acquire_many(room)).await else {
            return Err("the calls before it take too long (see max_concurrent_calls)");
        };
        if let Some(rate) = &self.rate {
            let left = self.patience.saturating_sub(started.elapsed());
            let ready = tokio::select! {
                biased;
                () = closed.cancelled() => return Err("the connections were closed"),
                ready = rate.ready(left) => ready,
            };
            if !ready {
                return Err("too many calls came before it (see rate_limit)");
            }
        }
        Ok(permit)
    }

    /// Waits at most for `limit` until no call is in flight, and admits none until the result is dropped.
    pub async fn none(&self, limit: Duration) -> Option<SemaphorePermit<'_>> {
        timeout(limit, self.permits.acquire_many(self.all())).await.ok()?.ok()
    }

    fn all(&self) -> u32 {
        u32::try_from(self.most).unwrap_or(u32::MAX)
    }

    pub fn admit(&self) -> Result<Trial<'_>, Open> {
        self.use_now();
        let decides = self.breaker.lock().admit(clock::monotonic())?;
        Ok(Trial { admission: self, decides })
    }

    pub fn refusal(&self) -> Option<Open> {
        self.breaker.lock().refusal(clock::monotonic())
    }

    /// Notes that the server responded, or that a person works on it: the next call is a trial.
    pub fn succeeded(&self) {
        self.breaker.lock().succeeded();
    }

    pub fn failed(&self, reason: &str) -> bool {
        self.breaker.lock().failed(clock::monotonic(), reason)
    }

    pub fn pause(&self) -> Duration {
        self.breaker.lock().pause(clock::monotonic())
    }

    pub fn go_one_by_one(&self) {
        self.one_by_one.store(true, Ordering::Relaxed);
    }

    /// Keeps the server from being stopped while one of its tasks works, or waits for an answer, for as long as a task may take.
    pub fn follow_task(&self, id: &str) {
        self.tasks.lock().insert(id.to_owned(), clock::monotonic() + self.task_timeout);
    }

    pub fn end_task(&self, id: &str) {
        // First, so that no moment is seen in which it is unused and was so for long.
        self.use_now();
        self.tasks.lock().remove(id);
    }

    pub fn has_task(&self, id: &str) -> bool {
        self.tasks.lock().contains_key(id)
    }

    pub fn has_tasks(&self) -> bool {
        let now = clock::monotonic();
        let mut tasks = self.tasks.lock();
        tasks.retain(|_, until| *until > now);
        !tasks.is_empty()
    }

    /// Returns the time since the last call or task ended; `None` while one is active.
    pub fn idle_for(&self) -> Option<Duration> {
        let is_idle = self.permits.available_permits() == self.most && !self.has_tasks();
        let last = *self.last_used.lock();
        is_idle.then(|| last.elapsed())
    }

    pub fn use_now(&self) {
        *self.last_used.lock() = clock::monotonic();
    }
}

/// A call that was let through; if it decides and goes away undecided, the next one does.
pub(super) struct Trial<'a> {
    admission: &'a Admission,
    decides: bool,
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if self.decides {
            self.admission.breaker.lock().undecided();
        }
    }
}

/// First wait before another start of a server; the very first start has none.
const FIRST_WAIT: Duration = Duration::from_millis(250);

pub(super) struct Breaker {
    policy: BreakerPolicy,
    failures: usize,
    last: String,
    /// Calls are refused until then.
    open_until: Option<Instant>,
    /// One call is trying whether the server is well again.
    probing: bool,
    /// The server is not started again before.
    not_before: Option<Instant>,
    waits: ExponentialBackoff,
}

/// Why a call is refused, without the server's text, because prompts of other threads contain it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its circuit breaker is open after {failures} failures in a row; it is tried again in {} s",
    .again_in.as_secs_f64().ceil().max(1.0)
)]
pub(super) struct Open {
    failures: usize,
    last: String,
    again_in: Duration,
}

impl Open {
    /// Also describes the last failure, for operators, with the server's text.
    pub fn with_last_failure(&self) -> String {
        format!("{self}; the last failure: {}", self.last)
    }
}

impl Breaker {
    pub fn new(policy: BreakerPolicy) -> Self {
        let waits = waits(policy);
        Self {
            policy,
            failures: 0,
            last: String::new(),
            open_until: None,
            probing: false,
            not_before: None,
            waits,
        }
    }

    /// Admits a call, or explains the refusal; after the cool-down one call passes and decides for the rest.
    ///
    /// Returns whether the call is that one.
    pub fn admit(&mut self, now: Instant) -> Result<bool, Open> {
        match self.open_until {
            None => Ok(false),
            Some(until) if until <= now && !self.probing => {
                self.probing = true;
                Ok(true)
            }
            Some(until) => Err(self.open(until.saturating_duration_since(now))),
        }
    }

    /// Returns why calls are refused now, if they are.
    pub fn refusal(&self, now: Instant) -> Option<Open> {
        let left = self.open_until?.saturating_duration_since(now);
        (!left.is_zero() || self.probing).then(|| self.open(left))
    }

    fn open(&self, again_in: Duration) -> Open {
        Open { failures: self.failures, last: self.last.clone(), again_in }
    }

    pub fn succeeded(&mut self) {
        *self = Self::new(self.policy);
    }

    /// Notes a failure of the server, and returns whether calls are refused from now on that were not before.
    pub fn failed(&mut self, now: Instant, reason: &str) -> bool {
        self.failures += 1;
        self.last = reason.to_owned();
        self.probing = false;
        if self.failures > 1 {
            self.not_before = self.waits.next().map(|wait| now + wait);
        }
        let was_open = self.open_until.is_some();
        if self.failures >= self.policy.failures {
            self.open_until = Some(now + self.policy.cooldown);
        }
        !was_open && self.open_until.is_some()
    }

    /// Notes that the call that was to decide went away without an answer: the next one decides.
    pub fn undecided(&mut self) {
        self.probing = false;
    }

    pub fn pause(&self, now: Instant) -> Duration {
        // Who is let through an open breaker has waited long enough.
        if self.open_until.is_some() {
            return Duration::ZERO;
        }
        self.not_before.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }
}

fn waits(policy: BreakerPolicy) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(FIRST_WAIT.min(policy.cooldown))
        .with_max_delay(policy.cooldown)
        .with_jitter()
        .without_max_times()
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use perihelion_clock as clock;

    const COOLDOWN: Duration = Duration::from_secs(30);

    /// X6
    #[test]
    fn it_opens_after_failures_in_a_row_and_lets_one_call_decide() {
        let mut breaker = Breaker::new(BreakerPolicy { failures: 3, cooldown: COOLDOWN });
        let start = clock::monotonic();
        assert!(!breaker.failed(start, "a") && !breaker.failed(start, "b"));
        breaker.succeeded();
        assert!(!breaker.failed(start, "a") && !breaker.failed(start, "b"));
        assert_eq!(breaker.admit(start), Ok(false));
        assert!(breaker.failed(start, "it died"));
        let open = breaker.admit(start + Duration::from_secs(10)).unwrap_err();
        assert_eq!(
            open.to_string(),
            "its circuit breaker is open after 3 failures in a row; it is tried again in 20 s"
        );
        assert!(open.with_last_failure().ends_with("in 20 s; the last failure: it died"));
        let later = start + COOLDOWN;
        assert_eq!(breaker.refusal(later), None);
        assert_eq!(breaker.admit(later), Ok(true));
        assert!(breaker.admit(later).is_err(), "one at a time");
        breaker.undecided();
        assert_eq!(breaker.admit(later), Ok(true));
        assert!(!breaker.failed(later, "again"), "it was open before");
        assert!(breaker.admit(later + Duration::from_secs(1)).is_err());
        assert_eq!(breaker.admit(later + COOLDOWN), Ok(true));
        breaker.succeeded();
        assert_eq!(breaker.admit(later + COOLDOWN), Ok(false));
    }

    #[test]
    fn restarts_wait_longer_and_longer_but_the_first_one_does_not() {
        let mut breaker = Breaker::new(BreakerPolicy { failures: 100, cooldown: COOLDOWN });
        let now = clock::monotonic();
        let mut pauses = Vec::new();
        for _ in 0..14 {
            breaker.failed(now, "it died");
            pauses.push(breaker.pause(now));
        }
        assert_eq!(pauses[0], Duration::ZERO);
        assert!(pauses[1] >= FIRST_WAIT && pauses[5] > pauses[1] * 4, "{pauses:?}");
        assert!(pauses[13] >= COOLDOWN && pauses[13] <= COOLDOWN * 2, "{pauses:?}");
        assert_eq!(breaker.pause(now + COOLDOWN * 2), Duration::ZERO);
        breaker.succeeded();
        assert_eq!(breaker.pause(now), Duration::ZERO);
    }
}
