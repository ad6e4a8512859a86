//! What endpoints of models speak, and where each is to be found.

use serde::Deserialize;

use super::resolve::Setting;

/// Address used when a key is set but no address is.
pub(super) const PUBLIC_ENDPOINT: &str = "https://api.openai.com/v1";

/// What an endpoint speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// OpenAI's Chat Completions, as most servers of models have it.
    #[default]
    ChatCompletions,
    /// Anthropic's Messages; the address ends in `/v1`.
    Anthropic,
    /// Gemini's `generateContent`; the address ends in `/v1beta`.
    Gemini,
}

impl Setting for Api {}

impl Api {
    /// Returns the address used when a key is set but no address is.
    pub(super) fn public_endpoint(self) -> &'static str {
        match self {
            Self::ChatCompletions => PUBLIC_ENDPOINT,
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
        }
    }
}
