//! The result of sending a draft.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Result;

/// Marks a draft whose sending began, by either protocol.
pub const SENDING: &str = "$perihelionsending";

/// The outcome of a draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sent {
    /// Its Message-ID.
    pub id: String,
    pub state: SentState,
    /// Who it went to.
    pub recipients: Vec<String>,
    /// Why it is not in Sent, or still among the drafts, although it left.
    #[serde(skip)]
    pub not_filed: Option<String>,
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
    pub fn before(id: &str) -> Self {
        let state = SentState::AlreadySent;
        Self { id: id.to_owned(), state, recipients: Vec::new(), not_filed: None }
    }

    /// Says that this call sent it, and whether it was filed then.
    pub fn now(id: &str, recipients: Vec<String>, filed: Result<()>) -> Self {
        let not_filed = filed.err().map(|error| error.to_string());
        Self { id: id.to_owned(), state: SentState::Sent, recipients, not_filed }
    }
}
