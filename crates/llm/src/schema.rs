//! Turns Rust types into the strict JSON Schema dialect that models are held to.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// Returns the strict schema of a type: every key required, no others allowed, nothing a strict endpoint refuses.
///
/// Optional fields are `Option`: they stay required and may be null. Types meant for models have no maps,
/// no tuples and no enum at the root, which the dialect cannot express.
pub fn strict_schema<T: JsonSchema>() -> Value {
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
    fn a_recursive_type_keeps_a_reference_that_resolves() {
        let schema = strict_schema::<Tree>();
        let validator = jsonschema::validator_for(&schema).unwrap();
        assert!(validator.is_valid(&serde_json::json!({ "children": [{ "children": [] }] })));
        assert!(!validator.is_valid(&serde_json::json!({ "children": [{ "child": [] }] })));
    }
}
