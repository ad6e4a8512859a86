//! The content of schemas, across references and compositions, without endless loops.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{Catalogue, pointer};

/// How many compositions are followed one into another.
const DEPTH: usize = 8;

/// The keywords by which a schema is made of others.
const COMPOSITIONS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

pub fn has_type(catalogue: &Catalogue, schema: &Value, kind: &str) -> bool {
    let fits = |schema: &Value| match schema.get("type") {
        Some(Value::String(own)) => own == kind,
        Some(Value::Array(list)) => list.iter().any(|own| own == kind),
        _ => match kind {
            "array" => schema.get("items").is_some(),
            "object" => schema.get("properties").is_some(),
            _ => false,
        },
    };
    let mut found = |schema| fits(schema).then_some(());
    first(catalogue, schema, &COMPOSITIONS, DEPTH, &mut found).is_some()
}

pub fn required(catalogue: &Catalogue, schema: &Value) -> Vec<String> {
    let mut names = BTreeSet::new();
    first(catalogue, schema, &["allOf"], DEPTH, &mut |schema| -> Option<()> {
        let own = schema["required"].as_array().into_iter().flatten();
        names.extend(own.filter_map(|name| name.as_str().map(str::to_owned)));
        None
    });
    // What only answers have is never asked for.
    names.retain(|name| {
        property(catalogue, schema, name)
            .is_none_or(|found| catalogue.resolved(found)["readOnly"] != true)
    });
    names.into_iter().collect()
}

pub fn property<'a>(catalogue: &'a Catalogue, schema: &'a Value, name: &str) -> Option<&'a Value> {
    let mut found = |schema: &'a Value| schema.get("properties")?.get(name);
    first(catalogue, schema, &COMPOSITIONS, DEPTH, &mut found)
}

pub fn name(schema: &Value) -> Option<String> {
    schema["$ref"].as_str().map(|reference| pointer::name(reference).to_owned())
}

/// Returns the first thing found in a schema or, depth first, in those it is made of by some keywords.
fn first<'a, T>(
    catalogue: &'a Catalogue,
    schema: &'a Value,
    keywords: &[&str],
    depth: usize,
    found: &mut dyn FnMut(&'a Value) -> Option<T>,
) -> Option<T> {
    let schema = catalogue.resolved(schema);
    let own = found(schema);
    if own.is_some() || depth == 0 {
        return own;
    }
    let mut parts = keywords.iter().filter_map(|key| schema[*key].as_array()).flatten();
    parts.find_map(|part| first(catalogue, part, keywords, depth - 1, found))
}
