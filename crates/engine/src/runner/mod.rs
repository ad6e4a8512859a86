//! Drives a graph: the only place where nodes are awaited, timed, cancelled and their steps committed.
//!
//! Enter at [`Runner`]; [`Subgraph`] makes one a node of another graph. Invariants: a step is told to the
//! listeners only after the store acknowledged it (in the `sync` mode); anyone who lost the thread's lease
//! writes nothing more; the tasks of a step share one future with the loop, so whatever the loop awaits it
//! awaits beside them. Deliberately absent: decisions about what runs next, which are the engine's.

mod back;
mod claimed;
mod compact;
mod configuring;
mod crashes;
mod divergence;
mod drive;
mod edit;
mod input;
mod lease;
mod listeners;
mod outcome;
mod replay;
mod room;
mod run;
mod snapshots;
mod spans;
mod subgraph;
mod submit;
mod task;
mod writer;

pub use compact::compact;
pub use divergence::{About, Divergence, LeftOut, ReplayReport};
pub use edit::{AfterEdit, StateView};
pub use input::INPUT;
pub use lease::{holder_is_dead, machine, owner_name};
pub use outcome::{Durability, Error, Judge, RunOptions, RunOutcome, RunResult, STOPPED, Verdict};
pub use run::Runner;
pub use spans::Spans;
pub use subgraph::Subgraph;
