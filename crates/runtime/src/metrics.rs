//! The process's metrics, with the values that only the database and the servers have.

use std::sync::Arc;

use async_trait::async_trait;

use super::Error;
use perihelion_engine::checkpoint::{Store, ThreadStatus};
use perihelion_mcp::Pool;
use perihelion_settings::config::{Settings, Temporality};
use perihelion_settings::metrics::{server_stands, threads_stand, traces_pending};
use perihelion_telemetry::metrics::{Collected, Deliveries, Refresh, collect};

/// Every status of a thread: a status without threads is reported as zero.
const STATUSES: [ThreadStatus; 6] = [
    ThreadStatus::Idle,
    ThreadStatus::Busy,
    ThreadStatus::Queued,
    ThreadStatus::Interrupted,
    ThreadStatus::Failed,
    ThreadStatus::Parked,
];

pub struct Metrics {
    collected: &'static Collected,
    gauges: Arc<Gauges>,
}

impl Metrics {
    /// Reads the values of a store, and of the servers of a pool, if there is one.
    pub fn new(
        settings: &Settings,
        store: Arc<dyn Store>,
        tools: Option<Arc<Pool>>,
    ) -> Result<Self, Error> {
        Ok(Self { collected: begin(settings)?, gauges: Arc::new(Gauges { store, tools }) })
    }

    pub async fn text(&self) -> Result<String, Error> {
        self.gauges.refresh().await;
        Ok(self.collected.text()?)
    }
}

/// Starts to export metrics if the settings require it.
pub(super) fn deliveries(
    settings: &Settings,
    store: &Arc<dyn Store>,
    tools: &Arc<Pool>,
) -> Result<Option<Deliveries>, Error> {
    let Some(collector) = &settings.metrics.otlp else { return Ok(None) };
    let gauges = Arc::new(Gauges { store: Arc::clone(store), tools: Some(Arc::clone(tools)) });
    let interval = settings.metrics.interval;
    Ok(Some(Deliveries::start(collector, interval, begin(settings)?, gauges)?))
}

fn begin(settings: &Settings) -> Result<&'static Collected, Error> {
    Ok(collect(settings.metrics.temporality == Temporality::Delta)?)
}

/// Reports the values that have no event when they change.
struct Gauges {
    store: Arc<dyn Store>,
    tools: Option<Arc<Pool>>,
}

impl Gauges {
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
        if let Err(error) = self.count().await {
            tracing::debug!(%error, "the threads could not be counted");
        }
    }
}
