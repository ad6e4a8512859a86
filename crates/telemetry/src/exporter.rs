//! Exports the trace of each run that has ended, in the background, and repeats failed exports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::delivery::{Delivery, ExportCounts};
use super::otlp::{self, Sink};
use super::{Labels, View};
use perihelion_engine::checkpoint::Store;
use perihelion_engine::clock;
use perihelion_engine::ids::{RunId, ThreadId};
use perihelion_settings::config::{Collector, Prices};

/// Traces that may wait for a slow collector; more are left for later, so that memory stays bounded.
const WAITING: usize = 64;

/// How long closing waits for active deliveries; the rest is left to the next process.
const GRACE: Duration = Duration::from_secs(5);

/// Waits between rounds while the collector is away.
const FIRST_WAIT: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Which unfinished runs a process continues with.
///
/// Their traces are due when they end. Sending the spans of a crashed run would leave two roots in backends that never
/// replace a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContinuedRuns {
    /// It begins its own runs.
    #[default]
    None,
    Of(ThreadId),
    /// It is a worker.
    All,
}

impl ContinuedRuns {
    pub(super) fn includes(self, thread: ThreadId) -> bool {
        match self {
            Self::None => false,
            Self::Of(one) => one == thread,
            Self::All => true,
        }
    }
}

/// Exports traces in separate tasks; a run neither waits for an export nor fails with it.
#[derive(Debug)]
pub struct Exporter {
    delivery: Arc<Delivery>,
    planned: Arc<AtomicBool>,
    /// Deliveries that closing waits for.
    tasks: TaskTracker,
    /// Waits for a collector that is away.
    rounds: TaskTracker,
    stop: CancellationToken,
}

impl Exporter {
    /// Makes an exporter to a collector; `view` selects the content, `labels` are added to every trace, and model calls
    /// are billed by `prices`. Runs that are `continued` are not looked at until they have ended.
    ///
    /// # Errors
    /// [`otlp::Error::Setup`] when the address cannot be used.
    pub fn new(
        collector: &Collector,
        view: View,
        labels: Labels,
        prices: Prices,
        continued: ContinuedRuns,
    ) -> Result<Self, otlp::Error> {
        let delivery = Delivery {
            view,
            labels,
            prices,
            continued,
            sink: Mutex::new(Sink::new(collector)?),
            counts: parking_lot::Mutex::default(),
            warned: AtomicBool::default(),
        };
        Ok(Self {
            delivery: Arc::new(delivery),
            planned: Arc::default(),
            tasks: TaskTracker::new(),
            rounds: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    /// Exports the trace of a run that has ended; returns at once.
    pub fn run_ended(&self, store: Arc<dyn Store>, thread: ThreadId, run: RunId) {
        if self.tasks.len() >= WAITING {
            self.delivery.failed(&format!("more than {WAITING} traces wait for the collector"));
            return self.planner(store)();
        }
        let delivery = Arc::clone(&self.delivery);
        let stop = self.stop.clone();
        let again = self.planner(Arc::clone(&store));
        self.tasks.spawn(async move {
            let newest = delivery.newest(store.as_ref(), thread, run);
            match stop.run_until_cancelled(newest).await {
                None => drop(delivery.failed("the process ended before it was delivered")),
                Some(true) => {}
                Some(false) => again(),
            }
        });
    }

    /// Exports what earlier processes could not deliver; returns at once.
    pub fn catch_up(&self, store: Arc<dyn Store>) {
        let delivery = Arc::clone(&self.delivery);
        let stop = self.stop.clone();
        let again = self.planner(Arc::clone(&store));
        self.tasks.spawn(async move {
            if stop.run_until_cancelled(delivery.round(store.as_ref())).await == Some(false) {
                again();
            }
        });
    }

    /// Makes what plans rounds until one brings everything, with growing waits, unless that is planned already.
    fn planner(&self, store: Arc<dyn Store>) -> impl FnOnce() + Send + 'static {
        let delivery = Arc::clone(&self.delivery);
        let stop = self.stop.clone();
        let planned = Arc::clone(&self.planned);
        let rounds = self.rounds.clone();
        move || {
            if store.outbox().is_none() || planned.swap(true, Ordering::Relaxed) {
                return;
            }
            rounds.spawn(async move {
                let mut wait = FIRST_WAIT;
                let rounds = async {
                    loop {
                        clock::sleep(wait).await;
                        wait = (wait * 2).min(LONGEST_WAIT);
                        if delivery.round(store.as_ref()).await {
                            break;
                        }
                    }
                };
                stop.run_until_cancelled(rounds).await;
                planned.store(false, Ordering::Relaxed);
            });
        }
    }

    pub fn counts(&self) -> ExportCounts {
        self.delivery.counts()
    }

    /// Waits at most five seconds for active deliveries, and returns the status of the traces.
    pub async fn flush(&self) -> ExportCounts {
        self.tasks.close();
        let waited = tokio::time::timeout(GRACE, self.tasks.wait()).await;
        self.tasks.reopen();
        if waited.is_err() {
            tracing::debug!("traces are still under way");
        }
        self.counts()
    }

    /// As [`Exporter::flush`], and then leaves the active deliveries to the next process.
    pub async fn close(&self) -> ExportCounts {
        self.flush().await;
        self.stop.cancel();
        self.tasks.close();
        self.rounds.close();
        self.tasks.wait().await;
        self.rounds.wait().await;
        let counts = self.counts();
        if counts.failed > 0 {
            let ExportCounts { delivered, failed, rejected_spans } = counts;
            tracing::warn!(
                delivered,
                failed,
                rejected_spans,
                "traces were not delivered to the collector; the next process sends them again"
            );
        }
        counts
    }
}
