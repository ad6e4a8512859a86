//! The protocols of model endpoints, their default addresses, and the inputs of models.

use serde::Deserialize;

use super::resolve::{Setting, list};
use super::strict::Invalid;

/// Address used when a key is set but no address is.
pub(super) const PUBLIC_ENDPOINT: &str = "https://api.openai.com/v1";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// OpenAI's Chat Completions, the form of most model servers.
    #[default]
    ChatCompletions,
    /// Anthropic's Messages; the address ends in `/v1`.
    Anthropic,
    /// Gemini's `generateContent`; the address ends in `/v1beta`.
    Gemini,
}

impl Setting for Api {}

impl Api {
    /// Returns the provider that alone has this protocol, by its name in the conventions for generative AI.
    pub fn provider(self) -> Option<&'static str> {
        match self {
            Self::ChatCompletions => None,
            Self::Anthropic => Some("anthropic"),
            Self::Gemini => Some("gcp.gemini"),
        }
    }

    /// Returns the address used when a key is set but no address is.
    pub(super) fn public_endpoint(self) -> &'static str {
        match self {
            Self::ChatCompletions => PUBLIC_ENDPOINT,
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
        }
    }
}

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
    pub fn of(inputs: impl IntoIterator<Item = Input>) -> Self {
        Self(inputs.into_iter().collect())
    }

    pub fn takes(&self, input: Input) -> bool {
        input == Input::Text || self.0.contains(&input)
    }
}

impl Setting for Inputs {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        list(text)
    }
}
