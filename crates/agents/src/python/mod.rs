//! Computes: makes the model write a program, runs it in a sandbox, repairs it, and explains the result.
//!
//! Enter at [`kind`]. Invariant: data of upstream agents reaches a program as inputs, never through the model's own text. Deliberately
//! absent: running anything here; that is the server's, and whether a person is asked before is the gate's.

mod inputs;
mod run;

use std::sync::Arc;

use serde_json::Value;

use crate::pipeline::{Kind, Pipeline};

perihelion_engine::graph_state! {
    /// The state that the stages pass on.
    pub struct Computation, update ComputationUpdate, version 1 {
        code: String => overwrite,
        /// A table is wanted.
        table: bool => overwrite,
        runs: u32 => overwrite,
        /// Why the last one failed, or the changes that a person wants.
        problem: Option<String> => overwrite,
        /// The result of the last one.
        outcome: Value => overwrite,
    }
}

const REPAIRS: u32 = 3;

pub fn kind() -> Arc<dyn Kind> {
    Pipeline::<Computation>::new("python")
        .about("computes with a program that runs in a sandbox")
        .tool("run", "runs a Python program with inputs")
        .profile("python", &[("run", "run_python")])
        .natural_for("python")
        .template("python_code", include_str!("../../../../prompts/python_code.md"))
        .template("python_summary", include_str!("../../../../prompts/python_summary.md"))
        .stage("code", run::code)
        .stage("run", run::run)
        .stage("summary", run::summary)
        .into_kind()
}
