//! Computes the ID of a tool call's span before the span exists.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::ids::TOOL;
use super::rows::first_run;
use super::span_builder::trace_id;
use super::{Error, Result, SpanId};
use perihelion_engine::checkpoint::Store;
use perihelion_engine::graph::NodeLocation;
use perihelion_engine::ids::{RunId, ThreadId};
use perihelion_settings::config::TraceScope;
use perihelion_star::TraceContext;

/// Runs whose trace is remembered; beyond that all are looked up again.
const KNOWN: usize = 1024;

/// Names the `execute_tool` span that the projection will draw for a call.
///
/// The ids are derived, so the server's own spans have their parent whether or not it was sent yet.
pub struct Parents {
    store: Arc<dyn Store>,
    scope: TraceScope,
    /// Thread and first run of the trace that a run belongs to.
    known: Mutex<HashMap<RunId, (ThreadId, u32)>>,
}

impl Parents {
    pub fn new(store: Arc<dyn Store>, scope: TraceScope) -> Self {
        Self { store, scope, known: Mutex::default() }
    }

    pub(super) fn scope(&self) -> TraceScope {
        self.scope
    }

    /// Returns the number of the first run in the trace of a top thread's run, and the run's own.
    pub(super) async fn run(&self, thread: ThreadId, run: RunId) -> Option<(u32, u32)> {
        let found = async {
            let first = first_run(self.store.as_ref(), thread, run).await?;
            let runs = self.store.runs(thread).await?;
            Ok::<_, Error>((first, runs.iter().find(|row| row.id == run).map(|row| row.number)))
        };
        let found = found.await.inspect_err(|error| tracing::debug!(%error, "no trace for logs"));
        let (first, number) = found.ok()?;
        self.remember(run, (thread, first));
        Some((first, number.unwrap_or(first)))
    }

    async fn trace_of(&self, place: &NodeLocation) -> Option<(ThreadId, u32)> {
        let known = || self.known.lock();
        if let Some(trace) = known().get(&place.run) {
            return Some(*trace);
        }
        let found = self.look_up(place).await;
        let trace = found.inspect_err(|error| tracing::debug!(%error, "no trace context")).ok()?;
        self.remember(place.run, trace);
        Some(trace)
    }

    fn remember(&self, run: RunId, trace: (ThreadId, u32)) {
        let mut known = self.known.lock();
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert(run, trace);
    }

    /// A subgraph's spans are in the trace of the run that it is a part of: the top thread's newest.
    async fn look_up(&self, place: &NodeLocation) -> Result<(ThreadId, u32)> {
        let store = self.store.as_ref();
        let top = match &*place.namespace {
            "" => None,
            _ => store.info(place.thread).await?.root,
        };
        let Some(top) = top else {
            return Ok((place.thread, first_run(store, place.thread, place.run).await?));
        };
        let newest = store.runs(top).await?.last().ok_or(Error::NeverRan(top))?.id;
        Ok((top, first_run(store, top, newest).await?))
    }
}

#[async_trait]
impl TraceContext for Parents {
    async fn traceparent(&self, place: &NodeLocation, key: &str) -> Option<String> {
        let (thread, run) = self.trace_of(place).await?;
        let trace = trace_id(thread, run, self.scope);
        let span = SpanId::at(place.thread, run, place.step, place.task, TOOL, key);
        Some(format!("00-{trace}-{span}-01"))
    }
}
