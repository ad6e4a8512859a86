//! Turns Rust types into the strict JSON Schema dialect of models, and compiles schemas.

use std::any::TypeId;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock};

use jsonschema::{ValidationError, Validator};
use parking_lot::Mutex;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

/// Most compiled schemas: more than a program has, with some of its clients'.
const COMPILED: usize = 64;

/// Compiles a schema, or returns the validator of an equal one that was compiled before.
pub(super) fn compiled(schema: &Value) -> Result<Arc<Validator>, ValidationError<'static>> {
    static KNOWN: Mutex<VecDeque<(Value, Arc<Validator>)>> = Mutex::new(VecDeque::new());

    if let Some((_, validator)) = KNOWN.lock().iter().find(|(known, _)| known == schema) {
        return Ok(Arc::clone(validator));
    }
    let validator = Arc::new(jsonschema::validator_for(schema)?);
    let mut known = KNOWN.lock();
    known.truncate(COMPILED - 1);
    known.push_front((schema.clone(), Arc::clone(&validator)));
    Ok(validator)
}

/// Returns the strict schema of a type: every key is required, no other keys are permitted, and strict endpoints accept
/// it. It is made once.
///
/// Optional fields are `Option`: they stay required and may be null. Types meant for models have no maps,
/// no tuples and no enum at the root, which the dialect cannot express.
pub fn strict_schema<T: JsonSchema + 'static>() -> Arc<Value> {
    static KNOWN: LazyLock<Mutex<HashMap<TypeId, Arc<Value>>>> = LazyLock::new(Mutex::default);

    let mut known = KNOWN.lock();
    Arc::clone(known.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(make::<T>())))
}

fn make<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings
        .with_transform(RecursiveTransform(make_strict))
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

/// Keywords whose values are schemas by name, lists of schemas, and single schemas.
const NAMED: [&str; 5] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
const LISTED: [&str; 5] = ["items", "prefixItems", "anyOf", "oneOf", "allOf"];
const NESTED: [&str; 7] = ["items", "contains", "propertyNames", "not", "if", "then", "else"];

/// Returns a schema as every endpoint takes it.
///
/// Servers that make grammars of schemas refuse the whole request for a pattern without anchors, a schema `true` or a
/// reference that leads nowhere. Omitted keywords are still checked before a call is made.
pub(super) fn sendable(schema: &Value) -> Value {
    sendable_part(schema, schema)
}

fn sendable_part(schema: &Value, root: &Value) -> Value {
    let keywords = match schema {
        Value::Object(keywords) => keywords,
        Value::Bool(true) => return json!({}),
        other => return other.clone(),
    };
    let keyword = |(key, value): (&String, &Value)| {
        let sent = match (key.as_str(), value) {
            ("$ref", Value::String(reference)) => {
                let target = root.pointer(reference.strip_prefix('#')?);
                target.map(|_| value.clone())?
            }
            ("pattern", Value::String(pattern)) => anchored(pattern)?.into(),
            ("additionalProperties", Value::Object(_)) => sendable_part(value, root),
            (key, Value::Object(schemas)) if NAMED.contains(&key) => {
                let named =
                    |(name, schema): (&String, &Value)| (name.clone(), sendable_part(schema, root));
                Value::Object(schemas.iter().map(named).collect())
            }
            (key, Value::Array(schemas)) if LISTED.contains(&key) => {
                schemas.iter().map(|schema| sendable_part(schema, root)).collect()
            }
            (key, value) if NESTED.contains(&key) => sendable_part(value, root),
            _ => value.clone(),
        };
        Some((key.clone(), sent))
    };
    Value::Object(keywords.iter().filter_map(keyword).collect())
}

/// Returns whether a schema names a type among those of its values, in itself or in an alternative.
pub(super) fn takes(schema: &Value, kind: &str) -> bool {
    let is_kind = |named: &Value| named == kind || kind == "integer" && named == "number";
    let named = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    schema.get("type").is_some_and(is_kind)
        || named("type").any(is_kind)
        || named("enum").any(|value| kind == "string" && value.is_string())
        || ["anyOf", "oneOf"].into_iter().flat_map(named).any(|schema| takes(schema, kind))
}

/// Returns a schema without the lengths of texts and lists, which some strict endpoints refuse.
pub fn unbounded(mut schema: Value) -> Value {
    fn strip(schema: &mut Value) {
        match schema {
            Value::Object(keywords) => {
                keywords.retain(|key, value| {
                    let is_length =
                        ["maxLength", "minLength", "maxItems", "minItems"].contains(&key.as_str());
                    !(is_length && value.is_number())
                });
                keywords.values_mut().for_each(strip);
            }
            Value::Array(schemas) => schemas.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut schema);
    schema
}

/// Returns what of a tool's schema any grammar takes: names, types, descriptions and lists of values.
pub(super) fn plain(schema: &Value) -> Value {
    const KEPT: [&str; 5] = ["type", "description", "required", "enum", "additionalProperties"];
    let Value::Object(keywords) = schema else { return json!({}) };
    let keyword = |(key, value): (&String, &Value)| {
        let sent = match (key.as_str(), value) {
            ("properties", Value::Object(schemas)) => {
                let named = schemas.iter().map(|(name, schema)| (name.clone(), plain(schema)));
                Value::Object(named.collect())
            }
            ("items", schema) => plain(schema),
            (key, value) if KEPT.contains(&key) && !value.is_object() => value.clone(),
            _ => return None,
        };
        Some((key.clone(), sent))
    };
    Value::Object(keywords.iter().filter_map(keyword).collect())
}

/// Writes a pattern with both its anchors; `None` if grammars do not know its syntax.
fn anchored(pattern: &str) -> Option<String> {
    const UNKNOWN: [&str; 7] = ["(?", "\\b", "\\B", "\\A", "\\Z", "\\z", "\\p"];
    let is_begun = pattern.starts_with('^');
    let is_ended = pattern.ends_with('$') && !pattern.ends_with("\\$");
    if UNKNOWN.iter().any(|syntax| pattern.contains(syntax)) {
        return None;
    }
    if is_begun && is_ended {
        return Some(pattern.to_owned());
    }
    // One anchor belongs to one alternative alone.
    if (is_begun || is_ended) && pattern.contains('|') {
        return None;
    }
    let body = &pattern[usize::from(is_begun)..pattern.len() - usize::from(is_ended)];
    let before = if is_begun { "" } else { ".*" };
    let after = if is_ended { "" } else { ".*" };
    Some(format!("^{before}({body}){after}$"))
}

fn make_strict(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    for key in ["format", "title", "$schema", "default", "examples"] {
        object.remove(key);
    }
    if let Some(value) = object.remove("const") {
        object.insert("enum".to_owned(), Value::Array(vec![value]));
    }
    if let Some(alternatives) = object.remove("oneOf") {
        object.insert("anyOf".to_owned(), alternatives);
    }
    if let Some(reference) = object.get("$ref").cloned() {
        // Strict endpoints refuse anything beside a reference; only recursive types still have one.
        object.retain(|key, _| key == "$defs");
        object.insert("$ref".to_owned(), reference);
        return;
    }
    let properties = object.get("properties").and_then(Value::as_object);
    let keys = properties.map(|properties| properties.keys().cloned().collect::<Vec<_>>());
    if let Some(keys) = keys {
        object.insert("required".to_owned(), keys.into());
        object.insert("additionalProperties".to_owned(), false.into());
    } else if object.get("type").and_then(Value::as_str) == Some("object") {
        object.insert("properties".to_owned(), Value::Object(serde_json::Map::new()));
        object.insert("required".to_owned(), Value::Array(Vec::new()));
        object.insert("additionalProperties".to_owned(), false.into());
    }
}

#[cfg(test)]
mod tests {
    #![expect(dead_code, reason = "only the schemas of these types matter")]

    use super::*;

    /// A routing decision.
    #[derive(JsonSchema)]
    struct Decision {
        /// Why.
        thought_process: String,
        selected_agents: Vec<String>,
        tasks: Vec<Task>,
        clarification: Option<String>,
    }

    #[derive(JsonSchema)]
    struct Task {
        id: String,
        #[serde(default)]
        depends_on: Vec<String>,
        #[schemars(range(min = 0, max = 1))]
        weight: f64,
        due: Option<chrono::DateTime<chrono::Utc>>,
    }

    #[derive(JsonSchema)]
    struct Verdict {
        status: Status,
        second: Option<Status>,
        feedback: Option<String>,
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "UPPERCASE")]
    enum Status {
        /// Good as it is.
        Approved,
        Fixed,
        Rejected,
    }

    #[derive(JsonSchema)]
    struct Tree {
        children: Vec<Tree>,
    }

    #[test]
    fn a_nested_decision_becomes_strict() {
        insta::assert_json_snapshot!(strict_schema::<Decision>());
    }

    #[test]
    fn a_verdict_becomes_strict() {
        insta::assert_json_snapshot!(strict_schema::<Verdict>());
    }

    #[test]
    fn schema_features_that_grammars_refuse_are_repaired_or_left_out() {
        let schema = json!({
            "type": "object", "additionalProperties": true, "required": ["a"], "enum": [true],
            "properties": {
                "a": { "type": "string", "pattern": "[0-9]+" },
                "b": { "type": "string", "pattern": "^x|y" },
                "c": { "type": "string", "pattern": "^x" },
                "d": { "type": "string", "pattern": "^x|y$" },
                "e": { "type": "string", "pattern": "(?i)x" },
                "pattern": true,
                "ref": { "$ref": "#/$defs/gone", "description": "kept" },
                "there": { "$ref": "#/$defs/there" },
                "list": { "items": true, "anyOf": [true, false], "default": true },
            },
            "$defs": { "there": true },
        });
        let expected = json!({
            "type": "object", "additionalProperties": true, "required": ["a"], "enum": [true],
            "properties": {
                "a": { "type": "string", "pattern": "^.*([0-9]+).*$" },
                "b": { "type": "string" },
                "c": { "type": "string", "pattern": "^(x).*$" },
                "d": { "type": "string", "pattern": "^x|y$" },
                "e": { "type": "string" },
                "pattern": {},
                "ref": { "description": "kept" },
                "there": { "$ref": "#/$defs/there" },
                "list": { "items": {}, "anyOf": [{}, false], "default": true },
            },
            "$defs": { "there": {} },
        });
        assert_eq!(sendable(&schema), expected);
    }

    #[test]
    fn a_recursive_type_keeps_a_reference_that_resolves() {
        let schema = strict_schema::<Tree>();
        let validator = compiled(&schema).unwrap();
        assert!(validator.is_valid(&serde_json::json!({ "children": [{ "children": [] }] })));
        assert!(!validator.is_valid(&serde_json::json!({ "children": [{ "child": [] }] })));
    }
}
