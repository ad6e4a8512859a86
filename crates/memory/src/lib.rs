//! Data that outlives threads: skills of agents, and memories about users.
//!
//! Enter at [`Skills`] and [`UserMemory`]; both use one database and its
//! [`StoredIndex`](perihelion_recall::StoredIndex). Invariants: rows are stored and found only with a tenant and an
//! owner (the agent, the user). The part for a prompt is bounded, for any amount of data. No byte of deleted data
//! remains. Deliberately absent: any model call (who calls one hands the answer over) and any clock (times are
//! arguments).

mod error;
mod skills;
mod user;

pub use error::Error;
pub(crate) use error::Result;
pub use skills::{
    Call, KIND as SKILL_KIND, Lesson, Question, Skill, Skills, Step, ToolHashes, distil,
};
pub use user::{Entry, EntryKind, Operation, Operations, UserMemory, Verb};
