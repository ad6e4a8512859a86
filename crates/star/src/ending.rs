//! How a turn ended, by an answer or early and why, and how an output was judged.

use serde::{Deserialize, Deserializer, Serialize};

/// Why a turn ended, in the contract's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FinishReason {
    /// The supervisor judged the work to be done.
    Answered,
    Clarification,
    NoProgress,
    /// A bound on steps, tokens, cost or time was reached.
    Limit,
    /// The answer was cut off: only a part of it is there.
    Truncated,
    /// A model could not be reached, or did not give a usable answer.
    ModelFailed,
    NoAgents,
    Cancelled,
}

impl FinishReason {
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Why a turn went to QA before the supervisor judged its work to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EarlyEnd {
    pub reason: FinishReason,
    /// The same for people and for QA.
    pub text: String,
}

impl<'de> Deserialize<'de> for EarlyEnd {
    /// Reads an end; versions before 0.3 kept the text alone.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Stored {
            Whole { reason: FinishReason, text: String },
            Text(String),
        }
        Ok(match Stored::deserialize(deserializer)? {
            Stored::Whole { reason, text } => Self { reason, text },
            Stored::Text(text) => Self { reason: reason_of(&text), text },
        })
    }
}

fn reason_of(text: &str) -> FinishReason {
    let is_limit = ["the limit of", "the budget of", "the time limit of"]
        .iter()
        .any(|start| text.starts_with(start));
    if is_limit { FinishReason::Limit } else { FinishReason::NoProgress }
}

/// The verdict on an output.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE")]
pub enum ReflectionVerdict {
    Approved,
    Fixed,
    Rejected,
    #[default]
    Unverified,
}

impl ReflectionVerdict {
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_an_older_version_stored_as_a_text_is_read() {
        let read = |json: &str| serde_json::from_str::<EarlyEnd>(json).unwrap().reason;
        assert_eq!(read("\"the budget of 5 tokens was spent\""), FinishReason::Limit);
        assert_eq!(read("\"the same agents were chosen\""), FinishReason::NoProgress);
        let whole = EarlyEnd { reason: FinishReason::NoAgents, text: "none".into() };
        let json = serde_json::to_string(&whole).unwrap();
        assert_eq!(serde_json::from_str::<EarlyEnd>(&json).unwrap(), whole);
    }
}
