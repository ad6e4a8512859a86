//! What a model can be sent: text, and where it takes them images and PDF files.

use serde::Deserialize;

use super::invalid::Invalid;
use super::resolve::{Setting, list};

/// What a model can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    Text,
    Image,
    Pdf,
}

/// All that a model can be sent; text is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Inputs(Vec<Input>);

impl Inputs {
    /// Makes the list.
    pub fn of(inputs: impl IntoIterator<Item = Input>) -> Self {
        Self(inputs.into_iter().collect())
    }

    /// Tells whether the model can be sent it.
    pub fn takes(&self, input: Input) -> bool {
        input == Input::Text || self.0.contains(&input)
    }
}

impl Setting for Inputs {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        list(text)
    }
}
