//! Compares recorded runs: what two of them did alike, and where they parted.
//!
//! Enter at [`compare`], and at [`changes`] for two JSON values. Invariant: nothing is run and nothing is
//! written; what differs by nature (ids of threads and runs, readings of the clock) is no difference.
//! Deliberately absent: any drawing; the edges show what this room finds.

mod changes;
mod compare;
mod part;

pub use changes::{Change, changes};
pub use compare::{Aspect, Comparison, Difference, Pair, Side, compare};
pub use part::Totals;
