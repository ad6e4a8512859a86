//! Says in words what the API answered.

use serde_json::{Map, Value, json};

use super::Call;
use crate::pipeline::{Ask, Finding, Role, Source, Stage, StageResult, Step, Table};

/// Characters of an answer that the model is shown.
const SHOWN: usize = 8_000;

pub async fn summary(stage: Stage<Call>) -> StageResult<Call> {
    let answer = stage.state().answer.clone();
    let body = answer.get("body").cloned().unwrap_or_default();
    let text = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    let shown: String = text.chars().take(SHOWN).collect();
    let operation = stage.state().arguments["operation"].as_str().unwrap_or_default().to_owned();
    let prompt = json!({
        "task": stage.task(),
        "operation": operation,
        "status": answer.get("status"),
        "is_cut": shown.len() < text.len() || answer.get("truncated").and_then(Value::as_bool).unwrap_or_default(),
        "body": &shown,
    });
    let ask = Ask::new(Role::Summarizer, "summary", "").prompt("api_summary", prompt);
    // The data of the API is kept when the summary fails.
    let words = stage.ask_text_or(ask, shown).await?;
    let source = Source {
        source: format!("{}.call_operation", stage.server().name),
        reference: Some(operation),
        ..Source::default()
    };
    let mut finding = Finding::text(words).source(source);
    if let Some(table) = table(&body) {
        finding = finding.table(table);
    }
    Ok(Step::done(finding))
}

/// Reads a list of objects as a table: the body itself, or its one list.
fn table(body: &Value) -> Option<Table> {
    let list = match body {
        Value::Array(list) => list,
        Value::Object(entries) => {
            let mut lists = entries.values().filter_map(Value::as_array);
            let list = lists.next()?;
            if lists.next().is_some() {
                return None;
            }
            list
        }
        _ => return None,
    };
    let rows: Vec<&Map<String, Value>> =
        list.iter().map(Value::as_object).collect::<Option<_>>()?;
    Some(Table::of_objects(&rows)).filter(|table| !table.columns.is_empty())
}
