//! Tells a tool call the id of its span before there is one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::canvas::trace_id;
use super::rows::first_run;
use super::{Scope, SpanId};
use crate::checkpoint::Store;
use crate::graph::Place;
use crate::ids::RunId;
use crate::swarm::TraceContext;

/// Runs whose trace is remembered; beyond that all are looked up again.
const KNOWN: usize = 1024;

/// Names the `execute_tool` span that the projection will draw for a call.
///
/// The ids are derived, so the server's own spans have their parent whether or not it was sent yet.
pub struct Parents {
    store: Arc<dyn Store>,
    scope: Scope,
    /// First run of the trace that a run belongs to.
    known: Mutex<HashMap<RunId, u32>>,
}

impl Parents {
    /// Makes it for the threads of a store.
    pub fn new(store: Arc<dyn Store>, scope: Scope) -> Self {
        Self { store, scope, known: Mutex::default() }
    }

    async fn first_run(&self, place: &Place) -> Option<u32> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = known().get(&place.run) {
            return Some(*run);
        }
        let found = first_run(self.store.as_ref(), place.thread, place.run).await;
        let run = found.inspect_err(|error| tracing::debug!(%error, "no trace context")).ok()?;
        let mut known = known();
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert(place.run, run);
        Some(run)
    }
}

#[async_trait]
impl TraceContext for Parents {
    async fn traceparent(&self, place: &Place, key: &str) -> Option<String> {
        let run = self.first_run(place).await?;
        let trace = trace_id(place.thread, run, self.scope);
        let span = SpanId::of_tool_call(place.thread, run, place.step, place.task, key);
        Some(format!("00-{trace}-{span}-01"))
    }
}
