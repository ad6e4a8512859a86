//! Drives a graph: the only place where nodes are awaited, timed, cancelled and their steps committed.
//!
//! Enter at [`Runner`]; [`Subgraph`] makes one a node of another graph. Invariants: listeners learn of a step only
//! after the store acknowledged it (in the `sync` mode). A process that lost the thread's lease cannot write. The tasks
//! of a step share one future with the loop, so whatever the loop awaits, it awaits together with them. Deliberately
//! absent: decisions about what runs next, which are the engine's.

mod claimed;
mod commit_edit;
mod divergence;
mod drive;
mod edit;
mod input;
mod lease;
mod outcome;
mod replay;
mod run;
mod stream;
mod subgraph;
mod task;
mod writer;

pub use divergence::{About, Divergence, LeftOut, ReplayReport};
pub use edit::{AfterEdit, StateView, fork};
pub use input::INPUT;
pub use lease::{holder_is_dead, machine, owner_name};
pub use outcome::{Durability, Error, Judge, RunOptions, RunOutcome, RunResult, STOPPED, Verdict};
pub use run::Runner;
pub use stream::RunStream;
pub use subgraph::Subgraph;
pub use task::Spans;
pub use writer::compact;
