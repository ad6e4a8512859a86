//! The inputs of a program: the request's context, and the complete findings of upstream agents.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Computation;
use crate::pipeline::{Stage, StageError};

/// Characters of an input that the model is shown.
const SHOWN: usize = 400;
/// Most words of an upstream output that are tried as names of artifacts.
const TRIED: usize = 20;

/// Returns the inputs by name.
///
/// # Errors
/// [`StageError::Stop`] if the findings of upstream agents cannot be read.
pub async fn values(stage: &Stage<Computation>) -> Result<Map<String, Value>, StageError> {
    let mut inputs = Map::new();
    inputs.insert("context".to_owned(), json!(stage.context()));
    let mut upstream = Vec::new();
    let tables = stage.upstream_tables().await?;
    for (number, output) in stage.assignment().dependency_outputs.iter().enumerate() {
        upstream
            .push(json!({ "agent": output.agent, "task": output.task, "output": output.output }));
        let name = format!("upstream_{}", number + 1);
        let table = tables.get(number).cloned().flatten();
        let table = table.map(|table| json!({ "columns": table.columns, "rows": table.rows }));
        if let Some(data) = table.or_else(|| data(&output.output)) {
            inputs.insert(name.clone(), data);
        }
        let kept = artifacts(stage, &output.output).await?;
        for (at, content) in kept.into_iter().enumerate() {
            let name = if at == 0 { name.clone() } else { format!("{name}_{}", at + 1) };
            inputs.insert(name, data(&content).unwrap_or_else(|| json!(&*content)));
        }
    }
    if !upstream.is_empty() {
        inputs.insert("upstream".to_owned(), Value::Array(upstream));
    }
    Ok(inputs)
}

/// Describes the inputs to the model: their names, and how each begins.
pub async fn described(stage: &Stage<Computation>) -> Result<Value, StageError> {
    let described = values(stage).await?.into_iter().map(|(name, value)| {
        let text = value.to_string();
        let begins: String = text.chars().take(SHOWN).collect();
        json!({ "name": name, "type": kind(&value), "begins": begins, "is_whole": begins.len() == text.len() })
    });
    Ok(described.collect())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Object(entries)
            if entries.contains_key("columns") && entries.contains_key("rows") =>
        {
            "dict of columns and rows"
        }
        Value::Object(_) => "dict",
        Value::Array(_) => "list",
        Value::String(_) => "str",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Null => "None",
    }
}

fn data(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok()
}

async fn artifacts(stage: &Stage<Computation>, text: &str) -> Result<Vec<Arc<str>>, StageError> {
    let words = text.split(|c: char| c.is_whitespace() || "`'\"()[]{}<>,;".contains(c));
    let names = words
        .map(|word| word.trim_end_matches(['.', ':']))
        .filter(|word| word.contains('/') && word.len() < 200);
    let mut known = BTreeSet::new();
    let mut found = Vec::new();
    for name in names.take(TRIED).filter(|name| known.insert(*name)) {
        found.extend(stage.find_artifact(name).await?);
    }
    Ok(found)
}
