//! Traces found by what is in them, for those who serve them.

use std::sync::Arc;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;

use super::{Error, labels, view};
use perihelion_engine::checkpoint::Store;
use perihelion_settings::config::Settings;
use perihelion_telemetry::reading::{Finder, Found, Operation, Query};
use perihelion_telemetry::{Span, TraceId, otlp};

/// Finds traces by what is in them and by id, for those who serve them.
#[derive(Debug)]
pub struct TraceFinder {
    finder: Finder,
    content: bool,
}

impl TraceFinder {
    /// Makes a finder over a store; content is shown where the settings capture it.
    pub fn new(store: Arc<dyn Store>, settings: &Settings) -> Self {
        let content = settings.traces.content;
        Self { finder: Finder::new(store, view(settings), labels(settings)), content }
    }

    /// Finds traces that have a span that meets the query; see [`Finder::find`].
    ///
    /// # Errors
    /// Whatever the store reports.
    pub async fn find(&self, query: &Query) -> Result<Found, Error> {
        Ok(self.finder.find(query).await?)
    }

    /// Finds a trace by its id; see [`Finder::by_id`].
    ///
    /// # Errors
    /// Whatever the store reports.
    pub async fn by_id(&self, id: TraceId) -> Result<Option<Arc<Vec<Span>>>, Error> {
        Ok(self.finder.by_id(id).await?)
    }

    /// Lists the kinds of spans in recent traces.
    ///
    /// # Errors
    /// Whatever the store reports.
    pub async fn operations(&self) -> Result<Vec<Operation>, Error> {
        Ok(self.finder.operations().await?)
    }

    /// Writes spans as they are exported, content only where the settings capture it.
    pub fn to_otlp(&self, spans: &[Span]) -> ExportTraceServiceRequest {
        otlp::to_request(spans, self.content)
    }
}
