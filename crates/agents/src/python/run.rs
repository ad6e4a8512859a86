//! Runs the program; one that failed goes back to the model with its error.

use serde_json::{Value, json};

use super::{Computation, ComputationUpdate, REPAIRS, inputs};
use crate::pipeline::{AgentError, ErrorKind, Stage, StageResult, Step};

pub async fn run(stage: Stage<Computation>) -> StageResult<Computation> {
    let code = stage.state().code.clone();
    let runs = stage.state().runs + 1;
    let arguments = json!({ "code": code, "inputs": inputs::values(&stage).await? });
    let reply = stage.call("run", arguments).await?;
    let update = ComputationUpdate::new().runs(runs);
    if let Some(word) = reply.instruction.filter(|word| !word.trim().is_empty() && runs <= REPAIRS)
    {
        let problem = format!("the person who approved the program says: {word}");
        return Ok(Step::goto("code", update.problem(Some(problem))));
    }
    if reply.is_error {
        // The call was refused, by a person or by the server: another program would be as well.
        return Err(AgentError::new(ErrorKind::Tool, reply.text).into());
    }
    let outcome = reply.structured.unwrap_or_else(|| json!({ "stdout": reply.text }));
    let error = outcome.get("error").filter(|error| !error.is_null()).cloned();
    let Some(error) = error else {
        return Ok(Step::next(update.outcome(outcome).problem(None)));
    };
    if runs > REPAIRS {
        return Err(failed(&error, &code, runs).into());
    }
    stage.progress(format!("the program failed and is repaired: {}", text(&error, "message")));
    Ok(Step::goto("code", update.problem(Some(problem(&error)))))
}

fn problem(error: &Value) -> String {
    let line = error
        .get("line")
        .and_then(Value::as_u64)
        .map(|line| format!(" in line {line}"))
        .unwrap_or_default();
    format!("{}{line}: {}", text(error, "type"), text(error, "message"))
}

fn failed(error: &Value, code: &str, runs: u32) -> AgentError {
    let kind = match text(error, "type") {
        "SandboxViolation" => ErrorKind::Sandbox,
        "Timeout" => ErrorKind::Timeout,
        _ => ErrorKind::Tool,
    };
    let message = format!("the program failed {runs} times, the last time with {}", problem(error));
    AgentError::new(kind, message).with_details(json!({ "error": error, "code": code }))
}

fn text<'a>(error: &'a Value, key: &str) -> &'a str {
    error.get(key).and_then(Value::as_str).unwrap_or_default()
}
