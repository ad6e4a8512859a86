//! Makes the model write a program and runs it, a failed one again with its error; explains the result in words.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Computation, ComputationUpdate, REPAIRS, inputs};
use crate::pipeline::{
    AgentError, Ask, ErrorKind, Finding, Role, Source, Stage, StageResult, Step, Table, clip,
};

pub async fn run(stage: Stage<Computation>) -> StageResult<Computation> {
    let mut code = stage.state().code.clone();
    let runs = stage.state().runs + 1;
    let arguments = json!({ "code": code, "inputs": inputs::values(&stage).await? });
    let reply = stage.call("run", arguments).await?;
    let mut update = ComputationUpdate::new().runs(runs);
    let edited = reply.edited.as_ref().and_then(|edited| edited.get("code")?.as_str());
    if let Some(edited) = edited {
        edited.clone_into(&mut code);
        update = update.code(code.clone());
    }
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
    let line = error["line"].as_u64().map(|line| format!(" in line {line}")).unwrap_or_default();
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
    error[key].as_str().unwrap_or_default()
}

/// What the model answers.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "the rationale is for the trace, and makes the program better")]
struct Answer {
    /// In a sentence or two, how the program finds the answer.
    #[schemars(length(max = 300))]
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

/// Characters of the result for the model.
const SHOWN: usize = 6_000;

pub async fn summary(stage: Stage<Computation>) -> StageResult<Computation> {
    let outcome = stage.state().outcome.clone();
    let table = outcome.get("table").and_then(Table::read);
    let shown = shown(&outcome, table.as_ref());
    let prompt = json!({ "task": stage.task(), "code": stage.state().code, "outcome": &shown });
    let ask = Ask::new(Role::Summarizer, "summary", "").prompt("python_summary", prompt);
    // The computed result is kept when the summary fails.
    let words = stage.ask_text_or(ask, shown).await?;
    let source =
        Source { source: format!("{}.run_python", stage.server().name), ..Source::default() };
    Ok(Step::done(Finding { table, ..Finding::text(words).source(source) }))
}

fn shown(outcome: &Value, table: Option<&Table>) -> String {
    let mut parts = Vec::new();
    if let Some(result) = outcome.get("result").filter(|result| !result.is_null()) {
        parts.push(format!("result: {result}"));
    }
    if let Some(printed) = outcome["stdout"].as_str().filter(|printed| !printed.is_empty()) {
        parts.push(format!("printed:\n{printed}"));
    }
    if let Some(table) = table {
        let rows: Vec<String> =
            table.rows.iter().take(20).map(|row| Value::from(row.clone()).to_string()).collect();
        parts.push(format!(
            "table of {} rows, {}:\n{}",
            table.row_count,
            table.columns.join(", "),
            rows.join("\n")
        ));
    }
    if parts.is_empty() {
        parts.push(format!("variables: {}", outcome["locals"]));
    }
    clip(&parts.join("\n"), SHOWN)
}
