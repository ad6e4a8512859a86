//! Skills: how tasks were solved before, learned from approved success (S1.11).
//!
//! Enter at [`Skills`]. Invariant: a skill holds a method and no values: what came from the task or a result stands as a parameter,
//! what looks like a secret is gone. Deliberately absent: any text of a model (a solution is the calls that were recorded).

mod distil;
mod learn;
mod likeness;
mod secret;
mod store;

pub use distil::{Call, Lesson, Step, distil};
pub use store::{KIND, Match, Question, Skill, Skills, ToolHashes};
