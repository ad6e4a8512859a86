//! What schemas say, across references and compositions, without ever going in a circle.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{Catalogue, pointer};

/// How many compositions are followed one into another.
const DEPTH: usize = 8;

pub fn has_type(catalogue: &Catalogue, schema: &Value, kind: &str) -> bool {
    any(catalogue, schema, DEPTH, &mut |schema| match schema.get("type") {
        Some(Value::String(own)) => own == kind,
        Some(Value::Array(list)) => list.iter().any(|own| own == kind),
        _ => match kind {
            "array" => schema.get("items").is_some(),
            "object" => schema.get("properties").is_some(),
            _ => false,
        },
    })
}

pub fn required(catalogue: &Catalogue, schema: &Value) -> Vec<String> {
    let mut names = BTreeSet::new();
    collect_required(catalogue, schema, DEPTH, &mut names);
    // What only answers have is never asked for.
    names.retain(|name| {
        property(catalogue, schema, name).is_none_or(|found| {
            catalogue.resolved(found).get("readOnly").and_then(Value::as_bool) != Some(true)
        })
    });
    names.into_iter().collect()
}

/// Finds a property.
pub fn property<'a>(catalogue: &'a Catalogue, schema: &'a Value, name: &str) -> Option<&'a Value> {
    find_property(catalogue, schema, name, DEPTH)
}

pub fn name(schema: &Value) -> Option<String> {
    schema.get("$ref").and_then(Value::as_str).map(|reference| pointer::name(reference).to_owned())
}

fn any(
    catalogue: &Catalogue,
    schema: &Value,
    depth: usize,
    fits: &mut dyn FnMut(&Value) -> bool,
) -> bool {
    let schema = catalogue.resolved(schema);
    if fits(schema) {
        return true;
    }
    if depth == 0 {
        return false;
    }
    ["allOf", "anyOf", "oneOf"].iter().any(|key| {
        let list = schema.get(*key).and_then(Value::as_array);
        list.into_iter().flatten().any(|inner| any(catalogue, inner, depth - 1, fits))
    })
}

fn collect_required(
    catalogue: &Catalogue,
    schema: &Value,
    depth: usize,
    names: &mut BTreeSet<String>,
) {
    let schema = catalogue.resolved(schema);
    let own = schema.get("required").and_then(Value::as_array);
    names.extend(own.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)));
    if depth == 0 {
        return;
    }
    let list = schema.get("allOf").and_then(Value::as_array);
    for inner in list.into_iter().flatten() {
        collect_required(catalogue, inner, depth - 1, names);
    }
}

fn find_property<'a>(
    catalogue: &'a Catalogue,
    schema: &'a Value,
    name: &str,
    depth: usize,
) -> Option<&'a Value> {
    let schema = catalogue.resolved(schema);
    if let Some(found) = schema.get("properties").and_then(|properties| properties.get(name)) {
        return Some(found);
    }
    if depth == 0 {
        return None;
    }
    ["allOf", "anyOf", "oneOf"].iter().find_map(|key| {
        let list = schema.get(*key).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .find_map(|inner| find_property(catalogue, inner, name, depth - 1))
    })
}
