//! Checks arguments and results against the JSON Schemas that tools declare.

use jsonschema::Validator;
use serde_json::{Map, Value};

use super::ToolDefinition;

/// More complaints than this help nobody.
const COMPLAINTS: usize = 5;
const COMPLAINT_CHARS: usize = 300;

/// Checks the arguments of a call against the tool's input schema, before anything is sent.
///
/// # Errors
/// The complaints, each with the place it is about, in words meant for the model that made the call.
pub fn validate_arguments(
    tool: &ToolDefinition,
    arguments: &Map<String, Value>,
) -> Result<(), String> {
    let validator = compile(&tool.input_schema)
        .map_err(|reason| format!("the input schema of {} cannot be used: {reason}", tool.name))?;
    check(&validator, &Value::Object(arguments.clone()))
        .map_err(|complaints| format!("invalid arguments for {}: {complaints}", tool.name))
}

/// Compiles a schema; references to other documents are never fetched and fail here.
pub(super) fn compile(schema: &Value) -> Result<Validator, String> {
    jsonschema::validator_for(schema).map_err(|error| shorten(&error.to_string()))
}

/// Compiles the schema of a form, whose formats (an email address, a date) are checked as well.
pub(super) fn compile_form(schema: &Value) -> Result<Validator, String> {
    if !schema.is_object() {
        return Err("it is not an object".into());
    }
    let options = jsonschema::options().should_validate_formats(true);
    options.build(schema).map_err(|error| shorten(&error.to_string()))
}

/// Checks a value, returning all complaints in one line.
pub(super) fn check(validator: &Validator, value: &Value) -> Result<(), String> {
    let complaints: Vec<String> = validator
        .iter_errors(value)
        .take(COMPLAINTS)
        .map(|error| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "/".to_owned() } else { place };
            format!("at {}: {}", shorten(&place), shorten(&error.to_string()))
        })
        .collect();
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ")) }
}

fn shorten(text: &str) -> String {
    super::menu::cut(text, COMPLAINT_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(schema: Value) -> ToolDefinition {
        ToolDefinition { name: "add".into(), input_schema: schema, ..ToolDefinition::default() }
    }

    #[test]
    fn wrong_arguments_are_named_with_their_place() {
        let tool = tool(json!({
            "type": "object", "required": ["a"],
            "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}
        }));
        let arguments = |value: Value| value.as_object().cloned().unwrap();
        assert_eq!(validate_arguments(&tool, &arguments(json!({"a": 1, "other": true}))), Ok(()));
        let complaint = validate_arguments(&tool, &arguments(json!({"b": 7}))).unwrap_err();
        assert!(complaint.contains("at /b:") && complaint.contains("\"a\""), "{complaint}");
    }

    #[test]
    fn a_schema_elsewhere_is_not_fetched() {
        assert!(compile(&json!({"$ref": "https://example.invalid/schema.json"})).is_err());
    }
}
