//! Repairs schemas that cannot be used as a server wrote them, where their meaning is clear.
//!
//! Generators and older drafts leave such traces: null for an empty list, a list for an empty object, `exclusiveMinimum`
//! as a flag, tuples under `items`, patterns of Python.

use serde_json::{Map, Value, json};

use super::schema;

/// Keywords whose values are schemas by name.
const NAMED: [&str; 5] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// Keywords whose values are data and may be null.
const DATA: [&str; 5] = ["default", "const", "enum", "example", "examples"];

const NUMBERS: [&str; 11] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];

/// How often a schema is looked through for invalid keywords, and how many are found each time.
const ROUNDS: usize = 4;
const MAX_INVALID: usize = 1_000;

pub(crate) fn repaired(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(keywords) = schema.as_object_mut() {
        // It is the current draft from here on.
        keywords.remove("$schema");
    }
    repair(&mut schema);
    drop_invalid(&mut schema);
    let whole = schema.clone();
    without_lost_references(&mut schema, &whole);
    schema
}

/// Drops keywords whose values are invalid: a schema without them accepts more.
fn drop_invalid(schema: &mut Value) {
    let draft = jsonschema::draft202012::meta::validator();
    for _ in 0..ROUNDS {
        let errors = draft.iter_errors(schema).take(MAX_INVALID);
        let places: Vec<String> = errors.map(|error| error.instance_path().to_string()).collect();
        if places.is_empty() {
            return;
        }
        places.iter().for_each(|place| remove(schema, place));
    }
}

/// Removes the keyword at a place; a list is removed whole, since it means less without one of its parts.
fn remove(schema: &mut Value, place: &str) {
    let Some((outer, key)) = place.rsplit_once('/') else { return };
    match schema.pointer_mut(outer) {
        Some(Value::Object(keywords)) => {
            keywords.remove(&key.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(_)) => remove(schema, outer),
        _ => {}
    }
}

/// Drops references to what is not there: nothing is known of such a value.
fn without_lost_references(schema: &mut Value, whole: &Value) {
    match schema {
        Value::Object(keywords) => {
            let place =
                keywords.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#'));
            // Anchors and encoded places are left to the validator.
            let is_plain = |place: &&str| place.starts_with('/') && !place.contains('%');
            if place.filter(is_plain).is_some_and(|place| whole.pointer(place).is_none()) {
                keywords.remove("$ref");
            }
            keywords.values_mut().for_each(|part| without_lost_references(part, whole));
        }
        Value::Array(parts) => {
            parts.iter_mut().for_each(|part| without_lost_references(part, whole));
        }
        _ => {}
    }
}

/// Returns the type that a word of a programming language means; none where it says nothing.
fn usual_type(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "string" | "str" | "text" => "string",
        "integer" | "int" | "long" => "integer",
        "number" | "float" | "double" | "decimal" => "number",
        "boolean" | "bool" => "boolean",
        "object" | "dict" | "map" => "object",
        "array" | "list" => "array",
        "null" | "none" => "null",
        _ => return None,
    })
}

fn repair(schema: &mut Value) {
    let Value::Object(keywords) = schema else { return };
    keywords.retain(|key, value| !value.is_null() || matches!(key.as_str(), "default" | "const"));
    for key in NAMED {
        if keywords.get(key).is_some_and(|named| named.as_array().is_some_and(Vec::is_empty)) {
            keywords.insert(key.to_owned(), json!({}));
        }
    }
    let words = match keywords.get("type") {
        Some(Value::Array(words)) => words.as_slice(),
        Some(word) => std::slice::from_ref(word),
        None => &[],
    };
    let kinds: Option<Vec<&str>> = words.iter().map(|word| usual_type(word.as_str()?)).collect();
    let mut kinds = kinds.unwrap_or_default();
    kinds.sort_unstable();
    kinds.dedup();
    match kinds.as_slice() {
        [] => keywords.remove("type"),
        [kind] => keywords.insert("type".to_owned(), (*kind).into()),
        kinds => keywords.insert("type".to_owned(), kinds.into()),
    };
    for key in NUMBERS {
        if let Some(Value::String(digits)) = keywords.get(key) {
            match digits.trim().parse::<serde_json::Number>() {
                Ok(number) => keywords.insert(key.to_owned(), number.into()),
                Err(_) => keywords.remove(key),
            };
        }
    }
    if let Some(Value::Object(named)) = keywords.get_mut("patternProperties") {
        named.retain(|pattern, _| is_pattern(pattern));
    }
    require(keywords);
    bound(keywords, "exclusiveMinimum", "minimum");
    bound(keywords, "exclusiveMaximum", "maximum");
    if keywords.get("items").is_some_and(Value::is_array)
        && let Some(tuple) = keywords.remove("items")
    {
        keywords.insert("prefixItems".to_owned(), tuple);
        if let Some(others) = keywords.remove("additionalItems") {
            keywords.insert("items".to_owned(), others);
        }
    }
    if let Some(Value::String(pattern)) = keywords.get("pattern") {
        let pattern = pattern.replace("\\A", "^").replace("\\Z", "$");
        keywords.remove("pattern");
        if is_pattern(&pattern) {
            keywords.insert("pattern".to_owned(), pattern.into());
        }
    }
    for (key, value) in keywords.iter_mut().filter(|(key, _)| !DATA.contains(&key.as_str())) {
        match value {
            Value::Object(named) if NAMED.contains(&key.as_str()) => {
                for schema in named.values_mut() {
                    // The type alone.
                    if !schema.is_object() && !schema.is_boolean() {
                        *schema = json!({ "type": schema.take() });
                    }
                    repair(schema);
                }
            }
            Value::Array(schemas) => schemas.iter_mut().for_each(repair),
            other => repair(other),
        }
    }
}

fn is_pattern(pattern: &str) -> bool {
    schema::compile(json!({ "pattern": pattern }).into()).is_ok()
}

/// Keeps only names in `required`; adds a property that declares itself required, as in draft 3.
fn require(keywords: &mut Map<String, Value>) {
    let mut names: Vec<Value> = match keywords.remove("required") {
        Some(Value::Array(names)) => names.into_iter().filter(Value::is_string).collect(),
        _ => Vec::new(),
    };
    let properties = keywords.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        let is_required = property.get("required") == Some(&Value::Bool(true));
        if is_required && !names.contains(&json!(name)) {
            names.push(json!(name));
        }
    }
    names.dedup();
    if !names.is_empty() {
        keywords.insert("required".to_owned(), names.into());
    }
}

/// Turns a flag that makes a bound exclusive, as in draft 4, into that bound.
fn bound(keywords: &mut Map<String, Value>, exclusive: &str, inclusive: &str) {
    let Some(Value::Bool(is_exclusive)) = keywords.get(exclusive) else { return };
    let is_exclusive = *is_exclusive;
    keywords.remove(exclusive);
    if is_exclusive && let Some(bound) = keywords.remove(inclusive) {
        keywords.insert(exclusive.to_owned(), bound);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_of_another_draft_or_a_careless_generator_is_repaired() {
        for (written, meant, right, wrong) in [
            (json!({ "required": null, "properties": null }), json!({}), json!({}), None),
            (
                json!({ "type": "object", "properties": [] }),
                json!({ "type": "object", "properties": {} }),
                json!({}),
                Some(json!(1)),
            ),
            (
                json!({ "minimum": 3, "exclusiveMinimum": true }),
                json!({ "exclusiveMinimum": 3 }),
                json!(4),
                Some(json!(3)),
            ),
            (
                json!({ "maximum": 3, "exclusiveMaximum": false }),
                json!({ "maximum": 3 }),
                json!(3),
                Some(json!(4)),
            ),
            (
                json!({ "items": [{ "type": "string" }], "additionalItems": false }),
                json!({ "prefixItems": [{ "type": "string" }], "items": false }),
                json!(["a"]),
                Some(json!([1])),
            ),
            (
                json!({ "pattern": "\\A[a-z]+\\Z" }),
                json!({ "pattern": "^[a-z]+$" }),
                json!("ab"),
                Some(json!("a1")),
            ),
            (json!({ "pattern": "(?<=" }), json!({}), json!("x"), None),
            (
                json!({ "type": ["str", "None"] }),
                json!({ "type": ["null", "string"] }),
                json!(null),
                Some(json!(1)),
            ),
            (json!({ "type": ["int", "integer"] }), json!({ "type": "integer" }), json!(1), None),
            (json!({ "type": ["string", "file"] }), json!({}), json!(1), None),
            (
                json!({ "properties": { "a": "string", "b": null, "c": 7, "d": ["int", "None"], "e": false } }),
                json!({ "properties": {
                    "a": { "type": "string" }, "b": {}, "c": {}, "d": { "type": ["integer", "null"] },
                    "e": false,
                } }),
                json!({ "a": "x", "b": 1 }),
                Some(json!({ "a": 1 })),
            ),
            (
                json!({
                    "type": { "type": "object" }, "additionalProperties": "false", "anyOf": [], "enum": "a",
                    "description": ["x"], "minLength": -1, "maxLength": 1.5, "title": 7, "$id": [], "format": {},
                    "properties": { "a": { "items": "string", "oneOf": [{ "type": "string" }, "null"] } },
                    "prefixItems": [{ "minItems": "few", "uniqueItems": "yes" }, null],
                    "$defs": { "a/b": { "deprecated": "no", "maximum": 7 } },
                    "patternProperties": { "(": { "maximum": 7 }, "x": {} }, "multipleOf": 0,
                }),
                json!({
                    "properties": { "a": {} }, "$defs": { "a/b": { "maximum": 7 } }, "patternProperties": { "x": {} },
                }),
                json!({ "a": 1 }),
                None,
            ),
            (json!({ "type": "any", "maxLength": "many" }), json!({}), json!("x"), None),
            (
                json!({ "type": "int", "minimum": "3" }),
                json!({ "type": "integer", "minimum": 3 }),
                json!(3),
                Some(json!(2)),
            ),
            (
                json!({ "properties": { "a": { "$ref": "#/$defs/Lost" } }, "$ref": "#/$defs/B", "$defs": { "B": { "type": "dict" } } }),
                json!({ "properties": { "a": {} }, "$ref": "#/$defs/B", "$defs": { "B": { "type": "object" } } }),
                json!({ "a": 1 }),
                Some(json!(1)),
            ),
            (
                json!({ "properties": { "a": { "required": true } } }),
                json!({ "properties": { "a": {} }, "required": ["a"] }),
                json!({ "a": 1 }),
                Some(json!({})),
            ),
            (
                json!({ "required": {}, "anyOf": [{ "enum": null, "default": null }] }),
                json!({ "anyOf": [{ "default": null }] }),
                json!(1),
                None,
            ),
        ] {
            let repaired = repaired(&written);
            assert_eq!(repaired, meant, "{written}");
            let checker = schema::compile(repaired.into()).unwrap();
            assert!(checker.check(&right).is_ok(), "{written}: {right}");
            assert!(wrong.is_none_or(|wrong| checker.check(&wrong).is_err()), "{written}");
        }
    }
}
