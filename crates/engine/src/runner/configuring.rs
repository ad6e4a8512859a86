//! What a runner is told once, before it runs anything.

use std::sync::Arc;
use std::time::Duration;

use super::outcome::Judge;
use super::run::Runner;
use super::spans::Spans;
use crate::graph::State;

impl<S: State> Runner<S> {
    /// Makes the leases of this runner last for `lease` without renewal; they are renewed each third of it.
    ///
    /// A process that died on another machine is waited for this long; one that is stopped for longer
    /// loses its threads. By default 15 seconds.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Has runs and tasks worked on within live spans, so that logs can say where they were written.
    #[must_use]
    pub fn with_spans(mut self, spans: Arc<dyn Spans>) -> Self {
        self.spans = Some(spans);
        self
    }

    /// Has `judge` say of each run at the top why it ended, and whether one that reached the end of the graph failed.
    #[must_use]
    pub fn judged_by(mut self, judge: Judge<S>) -> Self {
        self.judge = Some(judge);
        self
    }

    /// Makes the threads that this runner creates belong to a tenant.
    #[must_use]
    pub fn for_tenant(mut self, tenant: &str) -> Self {
        self.tenant = tenant.into();
        self
    }

    /// Makes each run that begins one whose trace is due, so that it is delivered even if this process dies.
    #[must_use]
    pub fn exporting_traces(mut self, exports: bool) -> Self {
        self.exports_traces = exports;
        self
    }
}
