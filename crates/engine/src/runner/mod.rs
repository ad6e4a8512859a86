//! Drives a graph: the only place where nodes are awaited, timed, cancelled and their steps committed.
//!
//! Enter at [`Runner`]; [`Subgraph`] makes one a node of another graph. Invariants: a step is told to the
//! listeners only after the store acknowledged it (in the `sync` mode); anyone who lost the thread's lease
//! writes nothing more; the tasks of a step share one future with the loop, so whatever the loop awaits it
//! awaits beside them. Deliberately absent: decisions about what runs next, which are the engine's.

mod claimed;
mod divergence;
mod drive;
mod edit;
mod input;
mod lease;
mod listeners;
mod outcome;
mod replay;
mod run;
mod snapshots;
mod subgraph;
mod task;
mod writer;

pub use divergence::{About, Divergence, LeftOut, ReplayReport};
pub use edit::{AfterEdit, StateView};
pub use input::INPUT;
pub use lease::{holder_is_dead, machine, owner_name};
pub use outcome::{Durability, Error, Judge, RunOptions, RunOutcome, RunResult, STOPPED, Verdict};
pub use run::Runner;
pub use snapshots::compact;
pub use subgraph::Subgraph;
pub use task::Spans;
