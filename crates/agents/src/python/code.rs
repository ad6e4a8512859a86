//! Has the model write a program, or repair the one that failed.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Computation, ComputationUpdate, inputs};
use crate::pipeline::{Ask, Role, Stage, StageResult, Step};

/// What the model answers.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "the rationale is for the trace, and makes the program better")]
struct Answer {
    /// In a sentence or two, how the program finds the answer.
    rationale: String,
    /// A Python program; the value of its last expression is the result.
    code: String,
    /// The program assigns rows (a list of dicts) to `table`.
    table: bool,
}

pub async fn code(stage: Stage<Computation>) -> StageResult<Computation> {
    let state = stage.state();
    let prompt = stage.variables(json!({
        "inputs": inputs::described(&stage).await?,
        "code": Some(&state.code).filter(|code| !code.is_empty()),
        "problem": state.problem,
    }));
    let ask = Ask::new(Role::Agent, "code", "computation").prompt("python_code", prompt);
    let answer: Answer = stage.ask(ask).await?;
    Ok(Step::next(ComputationUpdate::new().code(answer.code).table(answer.table)))
}
