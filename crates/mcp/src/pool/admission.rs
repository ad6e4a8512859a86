//! Admits calls to one server: a few at a time, at its rate, and none while its circuit breaker is open.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::breaker::{Breaker, Open};
use crate::configuration::ServerConfig;
use perihelion_clock::{self as clock, Rate};

/// The counters of one server's calls.
pub(super) struct Admission {
    breaker: Mutex<Breaker>,
    rate: Option<Rate>,
    permits: Semaphore,
    most: usize,
    patience: Duration,
    /// The server asks questions during calls, so only one can be in flight, to match its questions.
    one_by_one: AtomicBool,
    /// Tasks in progress, during which the server is in use.
    tasks: AtomicUsize,
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
            tasks: AtomicUsize::new(0),
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

    /// Lets a call pass the circuit breaker.
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

    /// Keeps the server from being stopped as unused while one of its tasks is waited for.
    pub fn follow_task(&self) -> InUse<'_> {
        self.tasks.fetch_add(1, Ordering::Relaxed);
        InUse(self)
    }

    /// Returns the time since the last call or task ended; `None` while one is active.
    pub fn idle_for(&self) -> Option<Duration> {
        let is_idle = self.permits.available_permits() == self.most
            && self.tasks.load(Ordering::Relaxed) == 0;
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

pub(super) struct InUse<'a>(&'a Admission);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        // First, so that no moment is seen in which it is unused and was so for long.
        self.0.use_now();
        self.0.tasks.fetch_sub(1, Ordering::Relaxed);
    }
}
