//! Checks arguments and results against the JSON Schemas that tools declare, each compiled once.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use jsonschema::{PatternOptions, ValidationError, ValidationOptions, Validator};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::schema_cost::{self, Unbounded};
use super::text::shorten;

/// Maximum number of reported problems.
const COMPLAINTS: usize = 5;
/// Maximum steps of a check that lists the problems, which takes far longer than only finding one.
const STEPS_TO_EXPLAIN: u64 = 50_000;
/// How often a pattern with look-around may try again.
const BACKTRACKS: usize = 10_000;
const PATTERN_BYTES: usize = 2 * 1024 * 1024;

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
    /// The first few problems, with their places.
    #[error("{}", .0.join("; "))]
    Complaints(Vec<String>),
}

/// A schema that values can be checked against, each in a bounded number of steps.
pub(crate) struct Checker {
    validator: Validator,
    schema: Arc<Value>,
}

impl Checker {
    pub fn schema(&self) -> &Value {
        &self.schema
    }

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

/// JSON Schema of a tool's arguments.
///
/// It is compiled at its first use, once for all copies: for the list of the server, the agents that get it, and all
/// their calls. It never changes, so the compiled form always belongs to this schema.
#[derive(Clone, Default, Deserialize)]
#[serde(from = "Value")]
pub struct InputSchema(Arc<Kept>);

#[derive(Default)]
struct Kept {
    schema: Arc<Value>,
    checker: OnceLock<Result<Checker, Unusable>>,
}

impl InputSchema {
    /// Returns what checks arguments; references to other documents are never fetched and fail here.
    pub(crate) fn checker(&self) -> Result<&Checker, &Unusable> {
        let compiled = self.0.checker.get_or_init(|| compile(Arc::clone(&self.0.schema)));
        compiled.as_ref()
    }

    /// Checks the arguments of a call of this tool, before anything is sent.
    ///
    /// # Errors
    /// [`InvalidArguments`], in words meant for the model that made the call.
    pub fn check(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<(), InvalidArguments> {
        let tool = tool.to_owned();
        match self.checker().map(|checker| checker.check(&Value::Object(arguments.clone()))) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(source)) => Err(InvalidArguments::Mismatch { tool, source }),
            Err(source) => Err(InvalidArguments::Schema { tool, source: source.clone() }),
        }
    }
}

/// Why the arguments of a call are not sent, in words meant for the model that made the call.
#[derive(Clone, Debug, thiserror::Error)]
pub enum InvalidArguments {
    #[error("the input schema of {tool} cannot be used: {source}")]
    Schema { tool: String, source: Unusable },
    /// The complaints, each with the place it is about.
    #[error("invalid arguments for {tool}: {source}")]
    Mismatch { tool: String, source: Mismatch },
}

impl From<Value> for InputSchema {
    fn from(schema: Value) -> Self {
        Self(Arc::new(Kept { schema: Arc::new(schema), checker: OnceLock::new() }))
    }
}

impl Deref for InputSchema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.schema
    }
}

impl PartialEq for InputSchema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl fmt::Debug for InputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Serialize for InputSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}
