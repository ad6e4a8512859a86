//! Spans: the work of a run, as a tree for other tools.
//!
//! Enter at [`read`] and [`project`]: spans are a projection of the stored rows. A crashed run's trace is therefore
//! complete, and the same rows always give the same spans, including IDs. One trace contains one run and the runs that
//! continued it after a crash, a failure or a stop. A new turn and a resume after a person's answer start a separate
//! trace, linked to the previous one. Invariants: this crate neither delays nor fails a run; texts of people, models
//! and tools leave the process only if content capture is on. Deliberately absent: exported live spans, which would die
//! with the process; the spans of [`layer`] only give log lines their context.

mod delivery;
pub mod dialect;
mod exporter;
mod group;
pub mod history;
mod ids;
mod labels;
mod live;
pub mod metrics;
pub mod otlp;
mod parents;
mod projection;
pub mod reading;
mod rows;
mod span;
mod span_builder;
mod task;
mod wire;

/// The name under which other tools see what this program did.
pub(crate) const PROGRAM: &str = "perihelion";

pub use delivery::ExportCounts;
pub use exporter::{ContinuedRuns, Exporter};
pub use ids::{SpanId, TraceId};
pub use labels::Labels;
pub use live::{LiveSpans, LogPlace, layer, place};
pub use parents::Parents;
pub use projection::{View, project, spans_of};
pub use reading::{Spent, bill};
pub use rows::{Rows, Which, read};
pub use span::{About, Link, Reason, RunOfTrace, Span, Status, ToolCount};

use perihelion_engine::checkpoint;
use perihelion_engine::ids::ThreadId;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] checkpoint::Error),
    #[error("thread {0} has not run yet, so it has no trace")]
    NeverRan(ThreadId),
    #[error("thread {thread} has no run {run}; its runs are 1 to {newest}")]
    UnknownRun { thread: ThreadId, run: u32, newest: u32 },
    /// The run committed no step, or its steps were removed by a truncation: then older runs have none either.
    #[error("run {run} of thread {thread} has no steps; they may be pruned")]
    Truncated { thread: ThreadId, run: u32, has_older: bool },
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
