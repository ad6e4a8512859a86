//! Checks arguments and results against the JSON Schemas that tools declare.

use jsonschema::{PatternOptions, ValidationOptions, Validator};
use serde_json::{Map, Value};

use super::{ToolDefinition, schema_cost};

/// More complaints than this help nobody.
const COMPLAINTS: usize = 5;
const COMPLAINT_CHARS: usize = 300;
/// Steps of a check beyond which nobody finds out what is wrong: that takes far longer than to find that something is.
const STEPS_TO_EXPLAIN: u64 = 50_000;
/// How often a pattern with look-around may try again.
const BACKTRACKS: usize = 10_000;
/// Bytes of a compiled pattern.
const PATTERN_BYTES: usize = 2 * 1024 * 1024;

/// A schema that values can be checked against, each in a bounded number of steps.
pub(super) struct Checker {
    validator: Validator,
    schema: Value,
}

/// Checks the arguments of a call against the tool's input schema, before anything is sent.
///
/// # Errors
/// The complaints, each with the place it is about, in words meant for the model that made the call.
pub fn validate_arguments(
    tool: &ToolDefinition,
    arguments: &Map<String, Value>,
) -> Result<(), String> {
    let checker = compile(&tool.input_schema)
        .map_err(|reason| format!("the input schema of {} cannot be used: {reason}", tool.name))?;
    check(&checker, &Value::Object(arguments.clone()))
        .map_err(|complaints| format!("invalid arguments for {}: {complaints}", tool.name))
}

/// Compiles a schema; references to other documents are never fetched and fail here.
pub(super) fn compile(schema: &Value) -> Result<Checker, String> {
    build(jsonschema::options(), schema)
}

/// Compiles the schema of a form, whose formats (an email address, a date) are checked as well.
pub(super) fn compile_form(schema: &Value) -> Result<Checker, String> {
    if !schema.is_object() {
        return Err("it is not an object".into());
    }
    build(jsonschema::options().should_validate_formats(true), schema)
}

fn build(options: ValidationOptions<'_>, schema: &Value) -> Result<Checker, String> {
    // Before anything follows its references.
    schema_cost::bounded(schema).map_err(|reason| shorten(&reason))?;
    let patterns = PatternOptions::fancy_regex();
    let patterns = patterns.backtrack_limit(BACKTRACKS).size_limit(PATTERN_BYTES);
    let validator = options.with_pattern_options(patterns).build(schema);
    let validator = validator.map_err(|error| shorten(&error.to_string()))?;
    Ok(Checker { validator, schema: schema.clone() })
}

/// Checks a value, returning all complaints in one line.
pub(super) fn check(checker: &Checker, value: &Value) -> Result<(), String> {
    let steps = schema_cost::steps(&checker.schema, value)
        .map_err(|reason| format!("it cannot be checked: {}", shorten(&reason)))?;
    if checker.validator.is_valid(value) {
        return Ok(());
    }
    if steps > STEPS_TO_EXPLAIN {
        return Err("it breaks the schema, which is too large to say where".into());
    }
    let complaints: Vec<String> = checker
        .validator
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
