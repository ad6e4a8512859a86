//! Memories about users: facts and preferences with dates (S3.03).
//!
//! Enter at [`UserMemory`]. Invariant: a key has one current value; a value that another one replaced has an end and
//! stays, a forgotten one is deleted with all before it. Deliberately absent: reading recalled memories; [`Operations`]
//! come from a model that saw only the user's own words.

mod operation;
mod store;

pub use operation::{EntryKind, Operation, Operations, Verb};
pub use store::{Entry, UserMemory};
