//! What a stage asks a model.

use serde::Serialize;
use serde_json::Value;

use perihelion_llm::{ChatMessage, Role};

/// A request to a model: who is asked, in which stage, for what form of answer, with what prompt.
#[derive(Clone, Debug)]
pub struct Ask {
    pub(super) role: Role,
    pub(super) stage: String,
    pub(super) schema: String,
    pub(super) prompt: Option<(String, Value)>,
    pub(super) messages: Vec<ChatMessage>,
}

impl Ask {
    /// Names the role, the word sent as `x-perihelion-stage`, and the schema of the answer.
    pub fn new(role: Role, stage: impl Into<String>, schema: impl Into<String>) -> Self {
        let stage = stage.into();
        let schema = schema.into();
        Self { role, stage, schema, prompt: None, messages: Vec::new() }
    }

    /// Names the prompt template and gives its variables, which are escaped.
    #[must_use]
    pub fn prompt(mut self, template: impl Into<String>, variables: impl Serialize) -> Self {
        let variables = serde_json::to_value(variables).unwrap_or_default();
        self.prompt = Some((template.into(), variables));
        self
    }

    /// Adds a message after the prompt.
    #[must_use]
    pub fn message(mut self, message: ChatMessage) -> Self {
        self.messages.push(message);
        self
    }
}
