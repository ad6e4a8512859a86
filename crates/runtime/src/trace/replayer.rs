//! Old traces sent to a collector on request.

use serde::Serialize;

use super::{Error, labels, last_run, view};
use perihelion_engine::checkpoint::Store;
use perihelion_engine::ids::ThreadId;
use perihelion_settings::config::{Collector, Prices, Settings};
use perihelion_telemetry::otlp::Sink;
use perihelion_telemetry::{self as telemetry, Labels, View, bill, spans_of};

/// The status of a thread's traces after another export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Replayed {
    pub traces: u64,
    pub spans: u64,
    /// Spans of traces that arrived which the collector refused.
    pub rejected_spans: u64,
    /// Traces whose steps were deleted, so that they cannot be exported.
    pub no_longer_kept: u64,
}

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
        let endpoint = endpoint.ok_or(Error::NoCollector)?;
        let mut collector = Collector { endpoint, transport: traces.transport.clone() };
        if !own {
            collector.transport.headers.clear();
            collector.transport.is_exact = false;
        }
        let sink = Sink::new(&collector)?;
        let prices = settings.models.price_list();
        Ok(Self { sink, view: view(settings), labels: labels(settings), prices })
    }

    /// Sends all traces of a thread, oldest first, under the ids they always have.
    ///
    /// An incomplete trace is exported up to its last step. `done` receives the delivered traces, also if an error ends
    /// the export.
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
            next = last_run(&spans).unwrap_or(next).max(next) + 1;
        }
        Ok(())
    }
}
