//! Reports the engine's work to a program that counts and times it.
//!
//! Enter at [`install`] with an [`Observer`]. Invariant: reporting never waits, and costs one atomic load without an
//! observer. Deliberately absent: instruments and their names, which are the program's.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::clock;
use crate::ids::ThreadId;

/// The reports of the engine; each method does nothing by default.
pub trait Observer: Send + Sync {
    /// A run of this graph began.
    fn run_started(&self, _graph: &Arc<str>) {}

    /// A run ended, with this status.
    fn run_ended(&self, _graph: &Arc<str>, _took: Duration, _status: &'static str) {}

    /// A run is no longer active, however it was left.
    fn run_left(&self, _graph: &Arc<str>) {}

    /// The commit of a step was acknowledged, or failed.
    fn step_committed(&self, _took: Duration, _committed: bool) {}

    /// Steps of a thread were read and folded into its state.
    fn steps_folded(&self, _thread: ThreadId, _steps: usize) {}

    /// A snapshot of a thread with this many bytes of JSON was read.
    fn snapshot_read(&self, _thread: ThreadId, _bytes: usize) {}

    /// An effect was recorded for the first time.
    fn effect_recorded(&self, _kind: &'static str) {}

    /// The recorded outcome of an effect was used instead of performing it.
    fn effect_read_back(&self, _kind: &'static str) {}

    /// A person was asked a question.
    fn interrupted(&self, _kind: &str) {}

    /// A run ended because another process took its thread.
    fn lease_lost(&self) {}

    /// A thread was claimed from a process that died or was stopped.
    fn lease_taken_over(&self) {}
}

static OBSERVER: OnceLock<Box<dyn Observer>> = OnceLock::new();

/// Reports to an observer from now on; a second call has no effect.
pub fn install(observer: impl Observer + 'static) {
    OBSERVER.get_or_init(|| Box::new(observer));
}

pub(crate) fn report(event: impl FnOnce(&dyn Observer)) {
    if let Some(observer) = OBSERVER.get() {
        event(observer.as_ref());
    }
}

/// Measures a duration, if there is an observer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer(Option<Instant>);

impl Timer {
    pub(crate) fn start() -> Self {
        Self(OBSERVER.get().map(|_| clock::monotonic()))
    }

    pub(crate) fn elapsed(self) -> Option<Duration> {
        self.0.map(|began| clock::monotonic().saturating_duration_since(began))
    }
}

/// A run that is active until this is dropped.
#[derive(Debug)]
pub(crate) struct ActiveRun {
    timer: Timer,
    /// `None` without an observer.
    graph: Option<Arc<str>>,
}

impl ActiveRun {
    pub(crate) fn start(graph: &str) -> Self {
        let timer = Timer::start();
        let graph = timer.elapsed().map(|_| Arc::<str>::from(graph));
        if let Some(graph) = &graph {
            report(|observer| observer.run_started(graph));
        }
        Self { timer, graph }
    }

    pub(crate) fn ended(self, status: &'static str) {
        if let (Some(took), Some(graph)) = (self.timer.elapsed(), &self.graph) {
            report(|observer| observer.run_ended(graph, took, status));
        }
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        if let Some(graph) = &self.graph {
            report(|observer| observer.run_left(graph));
        }
    }
}
