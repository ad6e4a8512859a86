//! Old traces sent to a collector on request.

use serde::Serialize;

use super::{Error, collector_at, labels, view};
use perihelion_engine::checkpoint::Store;
use perihelion_engine::ids::ThreadId;
use perihelion_settings::config::{Prices, Settings};
use perihelion_telemetry::otlp::Sink;
use perihelion_telemetry::{self as telemetry, About, Labels, View, bill, spans_of};

/// What became of the traces of a thread that were sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// Traces that arrived.
    pub traces: u64,
    /// Spans that arrived.
    pub spans: u64,
    /// Spans of traces that arrived which the collector refused.
    pub rejected_spans: u64,
    /// Traces whose steps are no longer kept, so that there is nothing to send.
    pub no_longer_kept: u64,
}

/// Sends traces to a collector on request.
#[derive(Debug)]
pub struct Replayer {
    sink: Sink,
    view: View,
    labels: Labels,
    prices: Prices,
}

impl Replayer {
    /// Makes one to an endpoint, or to the one in the settings; the settings' headers are for that one only.
    ///
    /// # Errors
    /// [`Error::NoCollector`] when neither is given, [`Error::Traces`] when the address cannot be used.
    pub fn new(settings: &Settings, endpoint: Option<String>) -> Result<Self, Error> {
        let traces = &settings.traces;
        let own = endpoint.is_none() || endpoint == traces.otlp_endpoint;
        let endpoint = endpoint.or_else(|| traces.otlp_endpoint.clone());
        let mut collector = collector_at(endpoint.ok_or(Error::NoCollector)?, settings);
        if !own {
            collector.headers.clear();
            collector.is_exact = false;
        }
        let sink = Sink::new(&collector)?;
        let prices = settings.models.price_list();
        Ok(Self { sink, view: view(settings), labels: labels(settings), prices })
    }

    /// Sends all traces of a thread, oldest first, under the ids they always have.
    ///
    /// A trace that is not over is sent as far as it goes. `done` is told what arrived, also when an error
    /// ends it.
    ///
    /// # Errors
    /// [`Error::Trace`] when the thread has never run, [`Error::Traces`] when the collector did not take a trace.
    pub async fn send(
        &self,
        store: &dyn Store,
        thread: ThreadId,
        done: &mut Replayed,
    ) -> Result<(), Error> {
        let runs = store.runs(thread).await?;
        let newest = runs.last().ok_or(telemetry::Error::NeverRan(thread))?.number;
        let mut next = runs.first().map_or(1, |run| run.number);
        while next <= newest {
            let mut spans = match spans_of(store, thread, next, self.view).await {
                Ok(spans) => spans,
                Err(telemetry::Error::Truncated { .. }) => {
                    done.no_longer_kept += 1;
                    next += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            self.labels.apply(&mut spans);
            bill(&mut spans, &self.prices);
            let rejected = self.sink.deliver(&spans, self.view.content).await?;
            done.traces += 1;
            done.rejected_spans += rejected;
            done.spans += (spans.len() as u64).saturating_sub(rejected);
            let last = match spans.first().map(|root| &root.about) {
                Some(About::Workflow { runs, .. }) => runs.last().map(|run| run.number),
                _ => None,
            };
            next = last.unwrap_or(next).max(next) + 1;
        }
        Ok(())
    }
}
