//! A question of a stage to the user.

use serde::{Deserialize, Serialize};

/// A question to the user, with answers to choose from where there are some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clarification {
    pub question: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

impl Clarification {
    /// Asks a question with a free answer.
    pub fn new(question: impl Into<String>) -> Self {
        Self { question: question.into(), options: Vec::new() }
    }

    /// Adds an answer to choose.
    #[must_use]
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }
}
