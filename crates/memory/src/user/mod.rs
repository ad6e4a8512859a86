//! What users said of themselves: facts and preferences with dates (S3.03).
//!
//! Enter at [`UserMemory`]. Invariant: a key has one current value; a value that another one replaced has an end and stays, a
//! forgotten one is deleted with all before it. Deliberately absent: any look at what was recalled; [`Operations`] come from a model that
//! was shown the user's own words alone.

mod operation;
mod store;

pub use operation::{EntryKind, Operation, Operations, Verb};
pub use store::{Entry, UserMemory};
