//! Sends the trace of each run that has ended, beside everything else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::otlp::{self, Collector, Sink};
use super::{View, Which, project, read};
use crate::checkpoint::Store;
use crate::ids::{RunId, ThreadId};

/// Traces that may wait for a slow collector; more are counted as failed, so that memory stays bounded.
const WAITING: usize = 64;

/// How long closing waits for what is under way.
const GRACE: Duration = Duration::from_secs(10);

/// What became of the traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportCounts {
    /// Traces that arrived.
    pub delivered: u64,
    /// Traces that did not, or not wholly.
    pub failed: u64,
    /// Spans of traces that arrived which the collector refused.
    pub rejected_spans: u64,
}

/// Exports traces in tasks of its own; a run neither waits for one nor fails with it.
#[derive(Debug)]
pub struct Exporter {
    shared: Arc<Shared>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Shared {
    view: View,
    /// One delivery at a time, as the exporter asks for.
    sink: Mutex<Sink>,
    delivered: AtomicU64,
    failed: AtomicU64,
    rejected: AtomicU64,
    warned: AtomicBool,
}

impl Exporter {
    /// Makes an exporter to a collector; `view` says what is exported.
    ///
    /// # Errors
    /// [`otlp::Error::Setup`] when the address cannot be used.
    pub fn new(collector: &Collector, view: View) -> Result<Self, otlp::Error> {
        let shared = Shared {
            view,
            sink: Mutex::new(Sink::new(collector)?),
            delivered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            warned: AtomicBool::new(false),
        };
        Ok(Self {
            shared: Arc::new(shared),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    /// Exports the trace of a run that has ended; returns at once.
    pub fn run_ended(&self, store: Arc<dyn Store>, thread: ThreadId, run: RunId) {
        if self.tasks.len() >= WAITING {
            self.shared.failed(&format!("more than {WAITING} traces wait for the collector"));
            return;
        }
        let (shared, stop) = (Arc::clone(&self.shared), self.stop.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => shared.failed("the process ended before it was delivered"),
                () = shared.export(store.as_ref(), thread, run) => {}
            }
        });
    }

    /// Returns what became of the traces so far.
    pub fn counts(&self) -> ExportCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ExportCounts {
            delivered: read(&self.shared.delivered),
            failed: read(&self.shared.failed),
            rejected_spans: read(&self.shared.rejected),
        }
    }

    /// Waits for what is under way, at most ten seconds, and returns what became of the traces.
    pub async fn flush(&self) -> ExportCounts {
        self.tasks.close();
        let waited = tokio::time::timeout(GRACE, self.tasks.wait()).await;
        self.tasks.reopen();
        if waited.is_err() {
            tracing::debug!("traces are still under way");
        }
        self.counts()
    }

    /// As [`Exporter::flush`], then gives up what is still under way.
    pub async fn close(&self) -> ExportCounts {
        self.flush().await;
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.counts()
    }
}

impl Shared {
    async fn export(&self, store: &dyn Store, thread: ThreadId, run: RunId) {
        let spans = match read(store, thread, Which::Run(run)).await {
            Ok((rows, number)) => project(&rows, number, self.view),
            Err(error) => Err(error),
        };
        let spans = match spans {
            Ok(spans) => spans,
            Err(error) => return self.failed(&error.to_string()),
        };
        match self.sink.lock().await.deliver(&spans, self.view.content).await {
            Ok(0) => {
                self.delivered.fetch_add(1, Ordering::Relaxed);
            }
            Ok(refused) => {
                self.delivered.fetch_add(1, Ordering::Relaxed);
                self.rejected.fetch_add(refused, Ordering::Relaxed);
                self.warn(&format!("the collector refused {refused} of {} spans", spans.len()));
            }
            Err(error) => self.failed(&error.to_string()),
        }
    }

    fn failed(&self, why: &str) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.warn(why);
    }

    /// Warns once; a collector that is down would otherwise be reported after every run.
    fn warn(&self, why: &str) {
        if self.warned.swap(true, Ordering::Relaxed) {
            tracing::debug!(why, "a trace was not exported");
        } else {
            tracing::warn!(why, "a trace was not exported; further failures are only counted");
        }
    }
}
