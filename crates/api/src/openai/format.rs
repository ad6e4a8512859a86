//! The form of an answer: text, or JSON that is valid against a schema.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::refusal::Refusal;
use crate::conversation::{Ending, Outcome};
use perihelion_llm::structured;

/// Characters of a schema's name at most.
const LONGEST_NAME: usize = 64;

/// `text.format` of a response.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Format {
    #[default]
    Text,
    JsonObject,
    JsonSchema(Described),
}

/// `response_format` of a chat completion.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ResponseFormat {
    Text,
    JsonObject,
    JsonSchema { json_schema: Described },
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct Described {
    name: String,
    description: Option<String>,
    schema: serde_json::Map<String, Value>,
    strict: Option<bool>,
}

impl From<ResponseFormat> for Format {
    fn from(format: ResponseFormat) -> Self {
        match format {
            ResponseFormat::Text => Self::Text,
            ResponseFormat::JsonObject => Self::JsonObject,
            ResponseFormat::JsonSchema { json_schema } => Self::JsonSchema(json_schema),
        }
    }
}

impl Format {
    /// Returns the schema that the answer must match, if any; `place` is the parameter that has it.
    pub(super) fn schema(&self, place: &str) -> Result<Option<Value>, Refusal> {
        let described = match self {
            Self::Text => return Ok(None),
            Self::JsonObject => return Ok(Some(json!({ "type": "object" }))),
            Self::JsonSchema(described) => described,
        };
        let name = &described.name;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
            let why = format!("Invalid '{place}.name': use 1 to 64 letters, digits, '_' and '-'.");
            return Err(Refusal::invalid(why).about(format!("{place}.name"), "invalid_value"));
        }
        let schema = Value::Object(described.schema.clone());
        match structured::check_schema(&schema) {
            Ok(()) => Ok(Some(schema)),
            Err(error) => {
                let why = format!("Invalid schema for {place} '{name}': {error}");
                Err(Refusal::invalid(why).about(format!("{place}.schema"), "invalid_json_schema"))
            }
        }
    }
}

/// The text of an outcome.
pub(super) struct Reply<'a> {
    pub text: &'a str,
    /// Whether it is not the JSON that was asked for: a question, or the text in place of a valid answer.
    pub is_refusal: bool,
}

impl<'a> Reply<'a> {
    /// Reads an outcome of a request that wanted an answer in the form of `schema`.
    pub(super) fn of(outcome: &'a Outcome, schema: Option<&Value>) -> Self {
        let is_valid = |schema| {
            outcome.ending == Ending::Answered
                && structured::read_valid(schema, &outcome.text).is_some()
        };
        Self { text: &outcome.text, is_refusal: schema.is_some_and(|schema| !is_valid(schema)) }
    }

    /// Returns its name among the fields of a chat message.
    pub(super) fn field(&self) -> &'static str {
        if self.is_refusal { "refusal" } else { "content" }
    }
}
