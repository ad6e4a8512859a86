//! Questions about SQL that are answered without a database: what a statement may do, what it reads, how it joins.
//!
//! Enter at [`guard::guard`]. Invariant: no I/O, no clock; any text gets an answer, never a panic.
//! Deliberately absent: connections, models, prompts.

mod catalogue;
pub mod chart;
mod clauses;
mod dialect;
pub mod fanout;
pub mod guard;
pub mod joins;
mod knowledge;
pub mod limit;
pub mod linking;
mod literals;
mod nearest;
pub mod numbers;
#[cfg(test)]
mod sample;
mod stack;
mod syntax;

pub use catalogue::{Catalogue, Column, ForeignKey, Table};
pub use dialect::Dialect;
pub use knowledge::{Fitting, Freshness, Knowledge, Metric, VerifiedQuery};
pub use nearest::nearest;
