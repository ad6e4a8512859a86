//! What is remembered between threads: skills that agents learned, and what users said of themselves.
//!
//! Enter at [`Skills`] and [`UserMemory`]; both stand on one database and its [`StoredIndex`](perihelion_recall::StoredIndex). Invariants: nothing is
//! kept or found without a tenant and an owner (the agent, the user); what goes into a prompt is bounded, however much is kept;
//! what is forgotten leaves no byte. Deliberately absent: any model call (who calls one hands the answer over) and any clock (times are
//! arguments).

mod error;
mod skills;
mod user;

pub use error::Error;
pub use skills::{
    Call, KIND as SKILL_KIND, Lesson, Match, Question, Skill, Skills, Step, ToolHashes, distil,
};
pub use user::{Entry, EntryKind, Operation, Operations, UserMemory, Verb};
