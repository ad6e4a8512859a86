//! What a model is shown of a tool's input schema: all that says how to call it, without what only generators need.

use serde_json::{Map, Value};

/// Keywords whose values are schemas by name.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// Keywords whose values are schemas, or lists of them.
const NESTED: [&str; 9] = [
    "items",
    "prefixItems",
    "additionalProperties",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "contains",
    "propertyNames",
];

/// Returns a schema without `$schema`, `$comment`, sizes of numbers as formats, `default: null`, titles that repeat
/// a name or stand in the description, and the title of the whole.
pub(super) fn shown(schema: &Value) -> Value {
    without_noise(None, schema)
}

/// `name` is that of a property, empty for what stands in a list of schemas, and none for the whole.
fn without_noise(name: Option<&str>, schema: &Value) -> Value {
    match schema {
        Value::Object(keywords) => {
            let kept = keywords.iter().filter(|(key, value)| !is_noise(name, keywords, key, value));
            Value::Object(kept.map(|(key, value)| (key.clone(), inner(key, value))).collect())
        }
        Value::Array(schemas) => schemas.iter().map(|schema| without_noise(name, schema)).collect(),
        other => other.clone(),
    }
}

fn inner(key: &str, value: &Value) -> Value {
    match value {
        Value::Object(schemas) if NAMED.contains(&key) => {
            let shown = |(name, schema): (&String, &Value)| {
                (name.clone(), without_noise(Some(name), schema))
            };
            Value::Object(schemas.iter().map(shown).collect())
        }
        _ if NESTED.contains(&key) => without_noise(Some(""), value),
        _ => value.clone(),
    }
}

fn is_noise(name: Option<&str>, keywords: &Map<String, Value>, key: &str, value: &Value) -> bool {
    match (key, value) {
        ("$schema" | "$comment", _) | ("default", Value::Null) => true,
        ("format", Value::String(format)) => {
            let digits = format.trim_start_matches('u').trim_start_matches("int");
            digits.len() < format.len() && digits.chars().all(|c| c.is_ascii_digit())
        }
        ("title", Value::String(title)) => {
            let about = keywords.get("description").and_then(Value::as_str).unwrap_or_default();
            name.is_none_or(|name| words(title) == words(name))
                || words(about).contains(&words(title))
        }
        _ => false,
    }
}

/// Returns the letters and digits of a name, in small letters.
fn words(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// S1.06: a model sees what it needs to call a tool, and no byte that only a generator wrote.
    #[test]
    fn what_says_how_to_call_a_tool_stays_and_the_rest_goes() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "SearchArguments", "type": "object",
            "properties": {
                "title": { "title": "Title", "type": "string", "default": null },
                "max_results": { "title": "Max Results", "type": ["integer", "null"], "format": "uint32", "minimum": 0 },
                "unit": { "title": "One of the SI", "type": "string" },
                "sum": { "title": "Amount in cents", "description": "What is paid.", "type": "integer" },
                "total": { "title": "Paid", "description": "What is paid.", "type": "integer" },
                "when": { "title": "When", "description": "Begin.", "type": "string", "format": "date", "default": "today" },
                "list": { "type": "array", "items": { "title": "Item", "type": "integer", "format": "int64" } },
                "how": { "oneOf": [{ "const": "a", "title": "By air" }] },
            },
            "required": ["title"], "$defs": { "Kind": { "title": "Kind", "enum": ["title", null] } },
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "title": { "type": "string" },
                "max_results": { "type": ["integer", "null"], "minimum": 0 },
                "unit": { "title": "One of the SI", "type": "string" },
                "sum": { "title": "Amount in cents", "description": "What is paid.", "type": "integer" },
                "total": { "description": "What is paid.", "type": "integer" },
                "when": { "description": "Begin.", "type": "string", "format": "date", "default": "today" },
                "list": { "type": "array", "items": { "title": "Item", "type": "integer" } },
                "how": { "oneOf": [{ "const": "a", "title": "By air" }] },
            },
            "required": ["title"], "$defs": { "Kind": { "enum": ["title", null] } },
        });
        assert_eq!(shown(&schema), expected);
    }
}
