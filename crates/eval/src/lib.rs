//! Suites of questions, with what must be true of their answers, and the figures of several models on them.
//!
//! Enter at [`Suite::parse`] (YAML) or [`Suite::parse_lines`] (a data set). [`check`] compares one run's result, in the
//! shape of `perihelion run --json`, with the expectations of its case. [`Evaluation`] has the results of each model, is
//! saved as a baseline, and compared with one. Invariant: the same results and seed give the same figures. Deliberately
//! absent: runs and models; a model's judgment arrives as an [`Outcome`] or a finding.

mod check;
mod compare;
mod evaluation;
mod record;
mod stats;
mod suite;

pub use check::{check, is_expected};
pub use compare::Change;
pub use evaluation::{Better, Evaluation, Figures, Judging, Outcome, Preference};
pub use record::{CaseRecord, Record, RunRecord, junit};
pub use stats::Estimate;
pub use suite::{AnswerRules, Budget, Case, DataRules, Error, Expect, NameRules, Suite, Turn};
