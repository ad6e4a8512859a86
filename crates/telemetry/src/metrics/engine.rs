//! Counts what the engine reports.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use perihelion_engine::observer::Observer;
use perihelion_settings::metrics::{instruments, label as l, tell};

/// Counts the reports of the engine, from [`super::collect`] on.
pub(super) struct EngineMetrics;

impl Observer for EngineMetrics {
    fn run_started(&self, graph: &Arc<str>) {
        let Some(to) = instruments() else { return };
        let labels = [KeyValue::new(l::GRAPH, Arc::clone(graph))];
        to.runs_started.add(1, &labels);
        to.runs_active.add(1, &labels);
    }

    fn run_ended(&self, graph: &Arc<str>, took: Duration, status: &'static str) {
        let Some(to) = instruments() else { return };
        let status = KeyValue::new(l::STATUS, status);
        to.runs_ended.add(1, &[KeyValue::new(l::GRAPH, Arc::clone(graph)), status.clone()]);
        to.runs
            .record(took.as_secs_f64(), &[KeyValue::new(l::WORKFLOW, Arc::clone(graph)), status]);
    }

    fn run_left(&self, graph: &Arc<str>) {
        tell(|to| to.runs_active.add(-1, &[KeyValue::new(l::GRAPH, Arc::clone(graph))]));
    }

    fn step_committed(&self, took: Duration, committed: bool) {
        let Some(to) = instruments() else { return };
        if committed {
            to.steps.add(1, &[]);
            to.commits.record(took.as_secs_f64(), &[]);
        } else {
            to.commits.record(took.as_secs_f64(), &[KeyValue::new(l::ERROR, "store_error")]);
        }
    }

    fn effect_recorded(&self, kind: &'static str) {
        tell(|to| to.recorded.add(1, &[KeyValue::new(l::EFFECT, kind)]));
    }

    fn effect_read_back(&self, kind: &'static str) {
        tell(|to| to.read_back.add(1, &[KeyValue::new(l::EFFECT, kind)]));
    }

    fn interrupted(&self, kind: &str) {
        tell(|to| to.interrupts.add(1, &[KeyValue::new(l::INTERRUPT, kind.to_owned())]));
    }

    fn lease_lost(&self) {
        tell(|to| to.leases_lost.add(1, &[]));
    }

    fn lease_taken_over(&self) {
        tell(|to| to.leases_taken.add(1, &[]));
    }
}
