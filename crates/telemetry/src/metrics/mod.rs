//! Collects the process's instruments, for a collector and for Prometheus.
//!
//! Both read the same instruments, each defined once in [`perihelion_settings::metrics`]: OpenTelemetry's SDK adds up, a
//! [`ManualReader`] is read for deliveries, and OpenTelemetry's own Prometheus exporter for the text. The SDK's
//! periodic exporter is not used, for the reasons given in [`otlp`].

mod deliveries;
mod engine;

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{
    InstrumentKind, ManualReader, Pipeline, SdkMeterProvider, Temporality,
};
use uuid::Uuid;

use super::otlp;

pub use deliveries::{Deliveries, Refresh};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot set up metrics: {0}")]
    Setup(#[from] opentelemetry_sdk::error::OTelSdkError),
    #[error("cannot write metrics as text: {0}")]
    Text(#[from] prometheus::Error),
}

pub struct Collected {
    /// Adds up while it lives.
    _provider: SdkMeterProvider,
    deliveries: Arc<ManualReader>,
    registry: prometheus::Registry,
}

/// The instruments are the process's, and so is what collects them.
static COLLECTED: OnceLock<Collected> = OnceLock::new();

/// Starts to collect, unless it has started; the first caller selects the temporality.
///
/// # Errors
/// [`Error::Setup`] when a reader cannot be made.
pub fn collect(delta: bool) -> Result<&'static Collected, Error> {
    if let Some(collected) = COLLECTED.get() {
        return Ok(collected);
    }
    let made = Collected::new(if delta { Temporality::Delta } else { Temporality::Cumulative })?;
    Ok(COLLECTED.get_or_init(|| {
        perihelion_settings::metrics::install(&made._provider.meter(crate::PROGRAM));
        perihelion_engine::observer::install(engine::EngineMetrics);
        made
    }))
}

impl Collected {
    fn new(temporality: Temporality) -> Result<Self, Error> {
        let deliveries = Arc::new(ManualReader::builder().with_temporality(temporality).build());
        let registry = prometheus::Registry::new();
        let scraped = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .build()?;
        // Without an id of its own a process would overwrite what another of the same name counted.
        let instance = KeyValue::new("service.instance.id", Uuid::new_v4().to_string());
        let known: Vec<KeyValue> = otlp::resource()
            .iter()
            .map(|(name, value)| KeyValue::new(name.clone(), value.clone()))
            .chain([instance])
            .collect();
        let provider = SdkMeterProvider::builder()
            .with_resource(Resource::builder_empty().with_attributes(known).build())
            .with_reader(Shared(Arc::clone(&deliveries)))
            .with_reader(scraped)
            .build();
        Ok(Self { _provider: provider, deliveries, registry })
    }

    pub fn text(&self) -> Result<String, Error> {
        Ok(prometheus::TextEncoder::new().encode_to_string(&self.registry.gather())?)
    }

    fn read(&self) -> Result<ResourceMetrics, Error> {
        let mut read = ResourceMetrics::default();
        self.deliveries.collect(&mut read)?;
        Ok(read)
    }
}

/// A reader that the provider and the deliveries share.
#[derive(Debug)]
struct Shared(Arc<ManualReader>);

impl MetricReader for Shared {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, into: &mut ResourceMetrics) -> OTelSdkResult {
        self.0.collect(into)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}
