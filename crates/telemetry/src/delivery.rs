//! Delivers traces to the collector and makes the exports that runs leave in the outbox.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Mutex;

use super::exporter::ContinuedRuns;
use super::group::may_continue;
use super::otlp::{self, Sink};
use super::rows::first_run;
use super::span::last_run;
use super::{Error, Labels, Span, View, Which, bill, project, read, spans_of};
use perihelion_engine::checkpoint::{self, PendingExport, RunRow, RunStatus, Store, ThreadStatus};
use perihelion_engine::clock;
use perihelion_engine::failpoint::{Point, wrap};
use perihelion_engine::ids::{RunId, ThreadId};
use perihelion_settings::config::Prices;
use perihelion_settings::metrics;

/// Threads with pending traces that are listed at once.
const PAGE: u32 = 256;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportCounts {
    pub delivered: u64,
    /// Deliveries that failed, completely or in part; their content is stored and tried again.
    pub failed: u64,
    /// Spans that the collector refused, of traces of which it took a part or none; they are not sent again.
    pub rejected_spans: u64,
}

/// Why traces of a thread did not arrive.
enum Undelivered {
    /// The thread cannot be read, or the collector refuses one; traces of other threads may arrive.
    OfThread,
    /// The collector is away, overloaded, or rejects our credentials.
    Collector,
}

#[derive(Debug)]
pub(super) struct Delivery {
    pub view: View,
    pub labels: Labels,
    pub prices: Prices,
    pub continued: ContinuedRuns,
    /// One delivery at a time, so that a slow collector does not get more requests.
    pub sink: Mutex<Sink>,
    pub counts: parking_lot::Mutex<ExportCounts>,
    pub warned: AtomicBool,
}

impl Delivery {
    pub(super) fn counts(&self) -> ExportCounts {
        *self.counts.lock()
    }

    /// Delivers the trace of a run that has ended, after the pending ones of its thread; returns whether all arrived.
    pub(super) async fn newest(&self, store: &dyn Store, thread: ThreadId, run: RunId) -> bool {
        let sink = self.sink.lock().await;
        let read = async {
            let (rows, number) = read(store, thread, Which::Run(run)).await?;
            let spans = project(&rows, number, self.view)?;
            Ok::<_, Error>((rows, number, spans))
        };
        let (rows, number, spans) = match read.await {
            Ok(read) => read,
            Err(error) => return self.failed(&error.to_string()),
        };
        let first = spans.first().map_or(number, |root| root.run);
        let mut from = first;
        if let Some(outbox) = store.outbox() {
            match outbox.pending_of(thread).await {
                Ok(Some(export)) => from = from.min(export.from_run),
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "older traces were not looked for"),
            }
        }
        let from = beginning(store, thread, &rows.runs, from).await;
        if from < first && self.runs(&sink, store, thread, from, first - 1).await.is_err() {
            return false;
        }
        let last = last_run(&spans).map_or(number, |run| run.number);
        self.deliver(&sink, store, thread, last, spans).await.is_ok()
    }

    /// Delivers pending traces, those of each thread until one does not arrive; returns whether all arrived.
    pub(super) async fn round(&self, store: &dyn Store) -> bool {
        let Some(outbox) = store.outbox() else { return true };
        let mut is_all = true;
        let mut after = None;
        loop {
            let mut exports = match outbox.pending(after.as_ref(), PAGE).await {
                Ok(exports) => exports,
                Err(error) => return self.failed(&error.to_string()),
            };
            let is_last = exports.len() < PAGE as usize;
            for export in &exports {
                match self.pending(store, export).await {
                    Ok(()) => {}
                    Err(Undelivered::OfThread) => is_all = false,
                    Err(Undelivered::Collector) => return false,
                }
            }
            if is_last {
                return is_all;
            }
            after = exports.pop();
        }
    }

    async fn pending(
        &self,
        store: &dyn Store,
        &PendingExport { thread, from_run, .. }: &PendingExport,
    ) -> Result<(), Undelivered> {
        let sink = self.sink.lock().await;
        let (info, runs) = match (store.info(thread).await, store.runs(thread).await) {
            (Ok(info), Ok(runs)) => (info, runs),
            // Deleted meanwhile.
            (Err(checkpoint::Error::UnknownThread(_)), _) => return Ok(()),
            // The store is away; the next round will see.
            _ => return Err(Undelivered::OfThread),
        };
        let newest = runs.last().map_or(0, |run| run.number);
        let is_leased = info.lease_until.is_some_and(|until| until > clock::now());
        let under_way = match info.status {
            ThreadStatus::Queued => true,
            ThreadStatus::Busy => is_leased || self.continued.includes(thread),
            _ => false,
        };
        let upto = newest.saturating_sub(u32::from(under_way));
        let from = beginning(store, thread, &runs, from_run).await;
        self.runs(&sink, store, thread, from, upto).await
    }

    async fn runs(
        &self,
        sink: &Sink,
        store: &dyn Store,
        thread: ThreadId,
        from: u32,
        upto: u32,
    ) -> Result<(), Undelivered> {
        let mut next = from;
        while next <= upto {
            let spans = match spans_of(store, thread, next, self.view).await {
                Ok(spans) => spans,
                Err(Error::Truncated { .. } | Error::UnknownRun { .. }) => {
                    // There is nothing left that could be sent.
                    self.paid(store, thread, next).await;
                    next += 1;
                    continue;
                }
                Err(error) => {
                    self.failed(&error.to_string());
                    return Err(Undelivered::OfThread);
                }
            };
            let last = last_run(&spans).map_or(next, |run| run.number);
            // The rest of it is still being written.
            if last > upto {
                break;
            }
            self.deliver(sink, store, thread, last, spans).await?;
            next = last.max(next) + 1;
        }
        Ok(())
    }

    /// Delivers one trace that ends with a run.
    ///
    /// One of which a collector reads no span is given up, as a single bad span is, if the collector has taken others:
    /// then the fault is not the collector's.
    async fn deliver(
        &self,
        sink: &Sink,
        store: &dyn Store,
        thread: ThreadId,
        run: u32,
        mut spans: Vec<Span>,
    ) -> Result<(), Undelivered> {
        self.labels.apply(&mut spans);
        bill(&mut spans, &self.prices);
        let all = spans.len() as u64;
        let takes_others = self.counts().delivered > 0;
        let refused = match wrap(Point::TraceSend, sink.deliver(&spans, self.view.content)).await {
            Ok(refused) => {
                self.counts.lock().delivered += 1;
                metrics::delivered("traces", true);
                refused
            }
            Err(otlp::Error::Unreadable(why)) if takes_others => {
                metrics::delivered("traces", false);
                self.warn(&why);
                all
            }
            Err(error) => {
                self.failed(&error.to_string());
                return Err(match error {
                    otlp::Error::Rejected(_) | otlp::Error::Unreadable(_) => Undelivered::OfThread,
                    otlp::Error::Setup(_) | otlp::Error::Delivery(_) => Undelivered::Collector,
                });
            }
        };
        self.counts.lock().rejected_spans += refused;
        metrics::spans_delivered(all.saturating_sub(refused), refused);
        if refused > 0 {
            self.warn(&format!("the collector refused {refused} of {all} spans"));
        }
        self.paid(store, thread, run - u32::from(may_continue_later(&spans))).await;
        Ok(())
    }

    async fn paid(&self, store: &dyn Store, thread: ThreadId, run: u32) {
        let Some(outbox) = store.outbox() else { return };
        if let Err(error) = wrap(Point::TracePaid, outbox.paid(thread, run)).await {
            tracing::debug!(%error, "a delivered trace could not be noted; it will be sent again");
        }
    }

    /// Counts a failure; always false, for it did not arrive.
    pub(super) fn failed(&self, why: &str) -> bool {
        self.counts.lock().failed += 1;
        metrics::delivered("traces", false);
        self.warn(why);
        false
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

/// Returns the number of the run from which on traces are sent when this one's is due.
///
/// That is the run before its trace, if it could have been resumed after its end: its spans were sent with temporary
/// IDs then, and now that it is closed, they are sent with final ones.
async fn beginning(store: &dyn Store, thread: ThreadId, runs: &[RunRow], number: u32) -> u32 {
    let Some(run) = runs.iter().find(|run| run.number == number) else { return number };
    let first = first_run(store, thread, run.id).await.unwrap_or(number);
    match runs.iter().find(|run| run.number + 1 == first) {
        Some(before) if may_continue(before.status) => before.number,
        _ => number,
    }
}

/// Returns whether the last run in a trace was still marked running when it was read: more of it may come.
///
/// The lease is not checked: clocks may differ, and a stopped process may continue.
fn may_continue_later(spans: &[Span]) -> bool {
    let is_running = last_run(spans).is_some_and(|run| run.status == RunStatus::Running);
    is_running && spans.first().is_some_and(|root| root.open)
}
