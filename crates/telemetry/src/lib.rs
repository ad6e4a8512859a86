//! Spans: what a run did, as a tree that other tools can show.
//!
//! Enter at [`read`] and [`project`]: spans are a projection of the stored rows, so a crashed run's
//! trace is whole and the same rows always give the same spans, ids included. One trace holds one run
//! and the runs that continued with it after a crash, a failure or a stop; a new turn and a resume after
//! a person's answer open a trace of their own, linked to the one before. Invariants: nothing here
//! delays or fails a run; what people, models and tools wrote leaves the process only when content
//! capture is on. Deliberately absent: live spans
//! that are exported, which would die with the process; those of [`layer`] only tell logs where they are.

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
pub use projection::{Scope, View, project, spans_of};
pub use reading::{Spent, bill};
pub use rows::{Rows, Which, read};
pub use span::{About, Link, Reason, RunOfTrace, Span, Status, ToolCount};

use perihelion_engine::checkpoint;
use perihelion_engine::ids::ThreadId;

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] checkpoint::Error),
    #[error("thread {0} has not run yet, so it has no trace")]
    NeverRan(ThreadId),
    #[error("thread {thread} has no run {run}; its runs are 1 to {newest}")]
    UnknownRun { thread: ThreadId, run: u32, newest: u32 },
    /// The run committed nothing, or its steps were removed by a truncation.
    #[error("run {run} of thread {thread} has no steps; they may be pruned")]
    Truncated { thread: ThreadId, run: u32 },
}
