//! Says in words what the API answered.

use serde_json::{Map, Value, json};

use super::Call;
use crate::pipeline::{Ask, Finding, Role, Source, Stage, StageError, StageResult, Step, Table};

/// Characters of an answer that the model is shown.
const SHOWN: usize = 8_000;

pub async fn summary(stage: Stage<Call>) -> StageResult<Call> {
    let answer = stage.state().answer.clone();
    let body = answer.get("body").cloned().unwrap_or_default();
    let text = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    let shown: String = text.chars().take(SHOWN).collect();
    let operation = stage
        .state()
        .arguments
        .get("operation")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let prompt = json!({
        "task": stage.task(),
        "operation": operation,
        "status": answer.get("status"),
        "is_cut": shown.len() < text.len() || answer.get("truncated").and_then(Value::as_bool).unwrap_or_default(),
        "body": shown,
    });
    let ask = Ask::new(Role::Summarizer, "summary", "").prompt("api_summary", prompt);
    let words = match stage.ask_text(ask).await {
        Ok(words) if !words.is_empty() => words,
        // What the API said is worth more than words about it.
        Ok(_) | Err(StageError::Failed(_)) => shown,
        Err(stop) => return Err(stop),
    };
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
    let mut columns: Vec<String> = Vec::new();
    for name in rows.iter().flat_map(|row| row.keys()) {
        if !columns.contains(name) {
            columns.push(name.clone());
        }
    }
    if rows.is_empty() || columns.is_empty() {
        return None;
    }
    let cells = |row: &&Map<String, Value>| {
        columns.iter().map(|name| row.get(name).cloned().unwrap_or_default()).collect()
    };
    let cells: Vec<Vec<Value>> = rows.iter().map(cells).collect();
    Some(Table { row_count: cells.len() as u64, rows: cells, columns, ..Table::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_objects_is_a_table_wherever_it_is_the_only_one() {
        let list = json!([{"a": 1, "b": 2}, {"b": 3, "c": null}]);
        let found = table(&list).unwrap();
        assert_eq!(found.columns, ["a", "b", "c"]);
        assert_eq!(
            found.rows,
            [[json!(1), json!(2), Value::Null], [Value::Null, json!(3), Value::Null]]
        );
        assert_eq!(table(&json!({"total": 2, "items": list})).unwrap().row_count, 2);
        assert_eq!(table(&json!({"a": [{"x": 1}], "b": []})), None);
        assert_eq!(table(&json!([1, 2])), None);
    }
}
