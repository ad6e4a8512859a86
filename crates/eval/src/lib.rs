//! Suites of questions, with what must be true of their answers.
//!
//! Enter at [`Suite::parse`] (YAML); [`check`] holds one run's result, in the shape that `perihelion run --json`
//! prints, to the expectations of its case; [`Record`] adds up what all runs gave, is saved as a baseline, compared
//! with one and written for CI systems. Invariant: a case without an expectation cannot pass. Deliberately absent:
//! running anything, and models; what a model judges comes in as a [`Verdict`].

mod check;
mod compare;
mod record;
mod suite;

pub use check::{Finding, Measured, check};
pub use compare::{Change, Comparison, compare};
pub use record::{CaseRecord, Record, RunRecord, Verdict, junit};
pub use suite::{
    AnswerRules, Budget, Case, DataRules, Error, Expect, NameRules, Suite, ToolRules, Turn,
};
