//! Skills: how tasks were solved before, learned from approved success (S1.11).
//!
//! Enter at [`Skills`]. Invariant: a skill contains a method and no values: values from the task or a result are
//! parameters, and texts that look like secrets are removed. Deliberately absent: any text of a model (a solution is
//! the calls that were recorded).

mod distil;
mod learn;
mod likeness;
mod secret;
mod store;

pub use distil::{Call, Lesson, Step, distil};
pub use store::{KIND, Question, Skill, Skills, ToolHashes};
