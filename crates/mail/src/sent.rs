//! The result of sending a draft.

use schemars::JsonSchema;
use serde::Serialize;

/// Marks a draft whose sending began, by either protocol.
pub const SENDING: &str = "$perihelionsending";

/// What became of a draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sent {
    /// Its Message-ID.
    pub id: String,
    pub state: SentState,
    /// Who it went to.
    pub recipients: Vec<String>,
}

/// Whether this call sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SentState {
    Sent,
    /// An earlier call did.
    AlreadySent,
}

impl Sent {
    /// Says that an earlier call sent it.
    pub fn before(id: &str) -> Self {
        Self { id: id.to_owned(), state: SentState::AlreadySent, recipients: Vec::new() }
    }
}
