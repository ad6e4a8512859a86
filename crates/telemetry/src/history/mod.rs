//! Compares recorded runs: their common part, and their differences.
//!
//! Enter at [`compare`], and at [`changes`] for two JSON values. Invariant: comparing runs and writes no steps; values
//! that always differ (IDs of threads and runs, readings of the clock) are no difference. Deliberately absent: drawing,
//! which is the task of the command line and the APIs.

mod changes;
mod compare;
mod part;

pub use changes::{Change, changes};
pub use compare::{Aspect, Comparison, Difference, Pair, Side, compare};
pub use part::Totals;
