//! The process's metrics, with what only the database and the servers know.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::{Error, Runtime, trace};
use perihelion_engine::checkpoint::{Store, ThreadStatus};
use perihelion_engine::clock;
use perihelion_mcp::Pool;
use perihelion_settings::config::{Settings, Temporality};
use perihelion_settings::metrics::{server_stands, threads_stand, traces_pending};
use perihelion_telemetry::metrics::{Collected, Deliveries, Refresh, collect};

/// Every status a thread may have: one that none has is told as zero.
const STATUSES: [ThreadStatus; 6] = [
    ThreadStatus::Idle,
    ThreadStatus::Busy,
    ThreadStatus::Queued,
    ThreadStatus::Interrupted,
    ThreadStatus::Failed,
    ThreadStatus::Parked,
];

/// Counting the database's threads may take this part of the time, and no more.
const SHARE: u32 = 20;

/// What is served to Prometheus.
pub struct Metrics {
    collected: &'static Collected,
    gauges: Arc<Gauges>,
}

impl Metrics {
    /// Begins to collect what this process does and how the threads of a store stand.
    ///
    /// # Errors
    /// [`Error::Metrics`].
    pub fn new(settings: &Settings, store: Arc<dyn Store>) -> Result<Self, Error> {
        Ok(Self { collected: begin(settings)?, gauges: Arc::new(Gauges::new(store, None)) })
    }

    /// Returns everything as it is now, in the text format of Prometheus.
    ///
    /// # Errors
    /// [`Error::Metrics`].
    pub async fn text(&self) -> Result<String, Error> {
        self.gauges.refresh().await;
        Ok(self.collected.text()?)
    }
}

impl Runtime {
    /// Returns what can be served to Prometheus; from then on at the latest it is collected.
    ///
    /// # Errors
    /// [`Error::Metrics`].
    pub fn metrics(&self) -> Result<Metrics, Error> {
        let gauges = Arc::new(Gauges::new(Arc::clone(self.store()), Some(self.pool())));
        Ok(Metrics { collected: begin(self.settings())?, gauges })
    }
}

/// Starts to deliver metrics where the settings want that.
pub(super) fn deliveries(
    settings: &Settings,
    store: &Arc<dyn Store>,
    tools: &Arc<Pool>,
) -> Result<Option<Deliveries>, Error> {
    let Some(collector) = trace::metrics_collector(settings) else { return Ok(None) };
    let gauges = Arc::new(Gauges::new(Arc::clone(store), Some(Arc::clone(tools))));
    let interval = settings.metrics.interval;
    Ok(Some(Deliveries::start(&collector, interval, begin(settings)?, gauges)?))
}

fn begin(settings: &Settings) -> Result<&'static Collected, Error> {
    Ok(collect(settings.metrics.temporality == Temporality::Delta)?)
}

/// Tells how things stand that nobody tells when they change.
struct Gauges {
    store: Arc<dyn Store>,
    tools: Option<Arc<Pool>>,
    /// When the database may be asked again.
    next: Mutex<Option<Instant>>,
}

impl Gauges {
    fn new(store: Arc<dyn Store>, tools: Option<Arc<Pool>>) -> Self {
        Self { store, tools, next: Mutex::default() }
    }

    async fn count(&self) -> Result<(), perihelion_engine::checkpoint::Error> {
        let counts = self.store.count_threads().await?;
        for status in STATUSES {
            let found = counts.iter().find(|(found, _)| *found == status);
            threads_stand(status.as_str(), found.map_or(0, |(_, count)| *count));
        }
        if let Some(outbox) = self.store.outbox() {
            traces_pending(outbox.count().await?);
        }
        Ok(())
    }
}

#[async_trait]
impl Refresh for Gauges {
    async fn refresh(&self) {
        for (server, up) in self.tools.iter().flat_map(|tools| tools.reachable()) {
            server_stands(server, up);
        }
        let mut next = self.next.lock().await;
        let began = clock::monotonic();
        if next.is_some_and(|next| next > began) {
            return;
        }
        if let Err(error) = self.count().await {
            tracing::debug!(%error, "the threads could not be counted");
        }
        let took: Duration = clock::monotonic().saturating_duration_since(began);
        *next = Some(began + took * SHARE);
    }
}
