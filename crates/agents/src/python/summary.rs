//! Says in words what came out.

use serde_json::{Value, json};

use super::Computation;
use crate::pipeline::{Ask, Finding, Role, Source, Stage, StageResult, Step, Table};

/// Characters of what came out that the model is shown.
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
    let mut finding = Finding::text(words).source(source);
    if let Some(table) = table {
        finding = finding.table(table);
    }
    Ok(Step::done(finding))
}

fn shown(outcome: &Value, table: Option<&Table>) -> String {
    let mut parts = Vec::new();
    if let Some(result) = outcome.get("result").filter(|result| !result.is_null()) {
        parts.push(format!("result: {result}"));
    }
    if let Some(printed) =
        outcome.get("stdout").and_then(Value::as_str).filter(|printed| !printed.is_empty())
    {
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
        let locals = outcome.get("locals").cloned().unwrap_or_default();
        parts.push(format!("variables: {locals}"));
    }
    let text = parts.join("\n");
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
