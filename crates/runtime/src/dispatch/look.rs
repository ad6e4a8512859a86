//! Polls for threads that can continue without a wake-up call.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Scope;
use perihelion_engine::checkpoint::{Error, Leases, Waiting, WorkFilter};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{holder_is_dead, machine};

/// Threads that a look reads at once; it reads on until some of them may continue.
const PAGE: u32 = 256;

/// A thread that may continue. While this value lives, the same worker does not get the thread again.
#[derive(Debug)]
pub struct Wake {
    pub thread: ThreadId,
    seen: Arc<Mutex<Seen>>,
}

impl Drop for Wake {
    fn drop(&mut self) {
        self.seen.lock().under_way.remove(&self.thread);
    }
}

pub struct Look {
    store: Arc<dyn Leases>,
    wanted: Vec<WorkFilter>,
    thorough: bool,
    every: Duration,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    found: VecDeque<ThreadId>,
    under_way: HashSet<ThreadId>,
    /// Until when.
    aside: HashMap<ThreadId, Instant>,
    last: Option<Instant>,
}

impl Seen {
    fn end_pauses(&mut self) {
        let now = clock::monotonic();
        self.aside.retain(|_, until| now < *until);
    }
}

impl Look {
    /// Makes a look at a store, to be repeated `every` so often; a thread counts as forgotten when it has
    /// been queued for `queued_for`.
    pub fn new(
        store: Arc<dyn Leases>,
        scope: Scope,
        every: Duration,
        queued_for: Duration,
    ) -> Self {
        // A machine without a name gets one that no holder has, so that no holder counts as dead.
        let machine = Some(machine()).filter(|name| !name.is_empty()).unwrap_or("\u{1}".to_owned());
        let wanted = |graph: String| WorkFilter {
            graph,
            except_tenant: scope.except_tenant.clone(),
            machine: machine.clone(),
            queued_for,
            limit: PAGE,
            skip: 0,
        };
        let wanted = scope.graphs.iter().cloned().map(wanted).collect();
        Self { store, wanted, thorough: scope.thorough, every, seen: Arc::default() }
    }

    /// Returns the next thread found, looking again when it is time to.
    pub async fn next(&self) -> Result<Option<Wake>, Error> {
        if let Some(wake) = self.found() {
            return Ok(Some(wake));
        }
        if !self.thorough && !self.until_due().is_zero() {
            return Ok(None);
        }
        let mut found = Vec::new();
        for wanted in &self.wanted {
            found.extend(self.waiting(wanted.clone()).await?);
        }
        let mut seen = self.seen.lock();
        seen.last = Some(clock::monotonic());
        seen.found = found.into_iter().map(|one| one.thread).collect();
        drop(seen);
        Ok(self.found())
    }

    /// Returns threads of a graph that can continue: those of the first page with any.
    async fn waiting(&self, mut wanted: WorkFilter) -> Result<Vec<Waiting>, Error> {
        loop {
            let mut waiting = self.store.waiting(&wanted).await?;
            let is_last = waiting.len() < wanted.limit as usize;
            wanted.skip += wanted.limit;
            self.keep_what_may_continue(&mut waiting);
            if is_last || !waiting.is_empty() {
                return Ok(waiting);
            }
        }
    }

    /// Drops threads that are running or set aside here, and those of a living process.
    fn keep_what_may_continue(&self, waiting: &mut Vec<Waiting>) {
        let mut seen = self.seen.lock();
        seen.end_pauses();
        waiting.retain(|one| {
            !seen.under_way.contains(&one.thread) && !seen.aside.contains_key(&one.thread)
        });
        drop(seen);
        waiting.retain(|one| one.holder.as_deref().is_none_or(holder_is_dead));
    }

    fn found(&self) -> Option<Wake> {
        loop {
            let thread = self.seen.lock().found.pop_front()?;
            if let Some(wake) = self.wake(thread) {
                return Some(wake);
            }
        }
    }

    /// Makes a call to a thread, unless it is under way here or set aside.
    pub fn wake(&self, thread: ThreadId) -> Option<Wake> {
        let mut seen = self.seen.lock();
        seen.end_pauses();
        if seen.aside.contains_key(&thread) || !seen.under_way.insert(thread) {
            return None;
        }
        Some(Wake { thread, seen: Arc::clone(&self.seen) })
    }

    pub fn set_aside(&self, wake: &Wake, pause: Duration) {
        self.seen.lock().aside.insert(wake.thread, clock::monotonic() + pause);
    }

    pub fn until_due(&self) -> Duration {
        let last = self.seen.lock().last;
        let since = last.map(|last| clock::monotonic().duration_since(last));
        since.map_or(Duration::ZERO, |since| self.every.saturating_sub(since))
    }
}
