//! Sends the numbers to a collector now and then, and once more at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::ResourceMetrics;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Collected;
use crate::otlp::{Error, sender};
use crate::wire::{Payload, Refusal, RefusalKind, Wire};
use perihelion_engine::checkpoint::Cause;
use perihelion_engine::clock;
use perihelion_settings::config::Collector;
use perihelion_settings::metrics;

/// How long the end of a process waits for the last delivery.
const GRACE: Duration = Duration::from_secs(5);

/// Reads values again that only the database and the servers have.
#[async_trait]
pub trait Refresh: Send + Sync {
    async fn refresh(&self);
}

/// Exports the process's metrics in a separate task; only the end of the process waits for it.
pub struct Deliveries {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
    stop: CancellationToken,
}

struct Shared {
    collected: &'static Collected,
    wire: Wire,
    gauges: Arc<dyn Refresh>,
    failed: AtomicU64,
    /// The collector takes no metrics, and is not asked again.
    absent: AtomicBool,
}

impl Deliveries {
    /// Starts to deliver each `interval`.
    ///
    /// # Errors
    /// [`Error::Setup`] when the address cannot be used.
    pub fn start(
        collector: &Collector,
        interval: Duration,
        collected: &'static Collected,
        gauges: Arc<dyn Refresh>,
    ) -> Result<Self, Error> {
        let wire = Wire::new::<ExportMetricsServiceRequest>(collector).map_err(Error::Setup)?;
        let failed = AtomicU64::new(0);
        let absent = AtomicBool::new(false);
        let shared = Arc::new(Shared { collected, wire, gauges, failed, absent });
        let stop = CancellationToken::new();
        let own = Arc::clone(&shared);
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let deliveries = async {
                while !own.absent.load(Ordering::Relaxed) {
                    clock::sleep(interval).await;
                    own.deliver(true).await;
                }
            };
            stopped.run_until_cancelled(deliveries).await;
        });
        Ok(Self { shared, task, stop })
    }

    /// Sends a request without metrics, to see whether the collector takes any; it names its sender, as that of traces.
    ///
    /// # Errors
    /// The reason why it does not.
    pub async fn check(collector: &Collector) -> Result<(), Cause> {
        let wire = Wire::new::<ExportMetricsServiceRequest>(collector)?;
        let empty = ResourceMetrics { resource: Some(sender()), ..Default::default() };
        let sent = wire.send(&ExportMetricsServiceRequest { resource_metrics: vec![empty] }).await;
        sent.map(drop).map_err(|refusal| refusal.reason.into())
    }

    /// Delivers once more, with one attempt of at most five seconds, and ends.
    pub async fn close(self) {
        self.stop.cancel();
        let _ = self.task.await;
        if !self.shared.absent.load(Ordering::Relaxed)
            && tokio::time::timeout(GRACE, self.shared.deliver(false)).await.is_err()
        {
            self.shared.failed("the collector did not answer before the process ended");
        }
        let failed = self.shared.failed.load(Ordering::Relaxed);
        if failed > 1 {
            tracing::warn!(failed, "deliveries of metrics failed");
        }
    }
}

impl Shared {
    /// Sends the present values; with patience, temporary failures are retried for about ten seconds.
    async fn deliver(&self, patiently: bool) {
        self.gauges.refresh().await;
        let request = match self.collected.read() {
            Ok(read) => ExportMetricsServiceRequest::from(&read),
            Err(error) => return self.failed(&error.to_string()),
        };
        let sent = if patiently {
            self.wire.send_with_patience(&request).await
        } else {
            self.wire.send(&request).await
        };
        match sent {
            Ok(rejected) => {
                metrics::delivered("metrics", true);
                if rejected > 0 {
                    tracing::debug!(rejected, "the collector refused numbers");
                }
            }
            Err(Refusal { kind: RefusalKind::Absent, reason }) => {
                self.absent.store(true, Ordering::Relaxed);
                tracing::info!(
                    reason,
                    "the collector takes no metrics at {}; OTEL_METRICS_EXPORTER=none stops the attempt",
                    ExportMetricsServiceRequest::PATH,
                );
            }
            Err(refusal) => self.failed(&refusal.reason),
        }
    }

    /// Counts a failure and warns of the first one.
    fn failed(&self, why: &str) {
        metrics::delivered("metrics", false);
        match self.failed.fetch_add(1, Ordering::Relaxed) {
            0 => {
                tracing::warn!(why, "metrics were not delivered; further failures are only counted")
            }
            _ => tracing::debug!(why, "metrics were not delivered"),
        }
    }
}
