//! Checks arguments and results against the JSON Schemas that tools declare.

use std::sync::Arc;

use jsonschema::{PatternOptions, ValidationError, ValidationOptions, Validator};
use serde_json::Value;

use super::schema_cost::{self, Unbounded};
use super::text::shorten;

/// More complaints than this help nobody.
const COMPLAINTS: usize = 5;
/// Steps of a check beyond which nobody finds out what is wrong: that takes far longer than to find that something is.
const STEPS_TO_EXPLAIN: u64 = 50_000;
/// How often a pattern with look-around may try again.
const BACKTRACKS: usize = 10_000;
/// Bytes of a compiled pattern.
const PATTERN_BYTES: usize = 2 * 1024 * 1024;

/// Why a schema cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unusable {
    #[error("it is not an object")]
    NoObject,
    #[error(transparent)]
    Unbounded(#[from] Unbounded),
    #[error("{}", shorten(&.0.to_string()))]
    Invalid(Arc<ValidationError<'static>>),
}

/// Why a value does not pass for one of its schema, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("it cannot be checked: {0}")]
    Uncheckable(#[from] Unbounded),
    #[error("it does not fit the schema; the schema is too large to find the place")]
    Unexplained,
    /// What is wrong at which place, the first few.
    #[error("{}", .0.join("; "))]
    Complaints(Vec<String>),
}

/// A schema that values can be checked against, each in a bounded number of steps.
pub(crate) struct Checker {
    validator: Validator,
    schema: Arc<Value>,
}

impl Checker {
    /// Returns the schema that it was compiled from.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Checks a value.
    pub fn check(&self, value: &Value) -> Result<(), Mismatch> {
        let steps = schema_cost::steps(&self.schema, value)?;
        if self.validator.is_valid(value) {
            return Ok(());
        }
        if steps > STEPS_TO_EXPLAIN {
            return Err(Mismatch::Unexplained);
        }
        let complaints: Vec<String> = self
            .validator
            .iter_errors(value)
            .take(COMPLAINTS)
            .map(|error| {
                let place = error.instance_path().to_string();
                let place = if place.is_empty() { "/".to_owned() } else { place };
                format!("at {}: {}", shorten(&place), shorten(&error.to_string()))
            })
            .collect();
        if complaints.is_empty() { Ok(()) } else { Err(Mismatch::Complaints(complaints)) }
    }
}

/// Compiles a schema; references to other documents are never fetched and fail here.
pub(crate) fn compile(schema: Arc<Value>) -> Result<Checker, Unusable> {
    build(jsonschema::options(), schema)
}

/// Compiles the schema of a form, whose formats (an email address, a date) are checked as well.
pub(crate) fn compile_form(schema: &Value) -> Result<Checker, Unusable> {
    if !schema.is_object() {
        return Err(Unusable::NoObject);
    }
    build(jsonschema::options().should_validate_formats(true), Arc::new(schema.clone()))
}

fn build(options: ValidationOptions<'_>, schema: Arc<Value>) -> Result<Checker, Unusable> {
    // Before anything follows its references.
    schema_cost::bounded(&schema)?;
    let patterns = PatternOptions::fancy_regex();
    let patterns = patterns.backtrack_limit(BACKTRACKS).size_limit(PATTERN_BYTES);
    match options.with_pattern_options(patterns).build(&schema) {
        Ok(validator) => Ok(Checker { validator, schema }),
        Err(error) => Err(Unusable::Invalid(Arc::new(error))),
    }
}
