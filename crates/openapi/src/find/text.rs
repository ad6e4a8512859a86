//! The searched text of an operation.

use std::collections::BTreeSet;

use serde_json::Value;

use super::words::stem;
use crate::{Catalogue, Operation, Snippet};

/// Texts with how much their words count.
pub type Weighted = Vec<(f64, String)>;

/// Longest indexed description, in characters; later text is rarely about the operation's purpose.
const DESCRIPTION: usize = 1_000;

/// How deep the fields of an answer are looked at.
const ANSWER: usize = 3;
/// Most fields of one answer that are indexed.
const FIELDS: usize = 150;

/// People search for the content of an answer more often than for an operation's name.
pub fn of_operation(catalogue: &Catalogue, operation: &Operation) -> Weighted {
    let names: Vec<String> =
        operation.parameters.iter().map(|parameter| split(&parameter.name)).collect();
    let description: String = operation.description.chars().take(DESCRIPTION).collect();
    let mut fields = BTreeSet::new();
    if let Some(answer) = &operation.answer {
        collect(catalogue, answer, ANSWER, &mut fields);
    }
    vec![
        (1.0, split(&operation.path)),
        (1.0, split(&operation.id)),
        (2.0, operation.summary.clone()),
        (1.5, split(&operation.tags.join(" "))),
        (1.0, description),
        (0.5, names.join(" ")),
        (0.5, fields.into_iter().map(split).collect::<Vec<_>>().join(" ")),
        (1.0, verbs(&operation.method).to_owned()),
    ]
}

/// Collects the names of a schema's fields, each once.
fn collect<'a>(
    catalogue: &'a Catalogue,
    schema: &'a Value,
    depth: usize,
    fields: &mut BTreeSet<&'a str>,
) {
    let schema = catalogue.resolved(schema);
    if depth == 0 || fields.len() >= FIELDS {
        return;
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        fields.insert(name);
        collect(catalogue, field, depth - 1, fields);
    }
    if let Some(items) = schema.get("items") {
        collect(catalogue, items, depth - 1, fields);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for inner in schema[key].as_array().into_iter().flatten() {
            collect(catalogue, inner, depth - 1, fields);
        }
    }
}

pub fn of_snippet(snippet: &Snippet) -> Weighted {
    vec![(2.0, snippet.title.clone()), (1.0, snippet.text.clone())]
}

/// Writes `getUserName` and `get_user-name` as words.
pub fn split(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && was_lower {
            words.push(' ');
        }
        was_lower = c.is_lowercase() || c.is_numeric();
        words.push(if c.is_alphanumeric() { c } else { ' ' });
    }
    words
}

pub fn stems(name: &str) -> Vec<String> {
    split(name).split_whitespace().map(|word| stem(&word.to_lowercase())).collect()
}

fn verbs(method: &str) -> &'static str {
    match method {
        "POST" => "create add new",
        "PUT" => "replace set update",
        "PATCH" => "update change edit modify",
        "DELETE" => "delete remove",
        _ => "get list show",
    }
}
