//! People's answers in their recorded form: one type to check them, act on them and store them.

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

pub use perihelion_engine::journal::Verdict;

/// A recorded answer; its JSON is the input of the question's node.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Recorded {
    Approval(ApprovalAnswer),
    Elicitation(ElicitationAnswer),
    /// To kind `outcome_unknown`.
    Outcome(Verdict),
    /// To a clarification, or to a question of a graph's own.
    Other(Value),
}

/// Whether a call may be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    Approve,
    #[default]
    Deny,
}

/// The decision on a call; an unreadable decision denies the call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ApprovalAnswer {
    #[serde(default, deserialize_with = "word")]
    pub decision: Word,
    /// Why, or a word for the agent.
    #[serde(default, deserialize_with = "or_default")]
    pub reason: Option<String>,
    /// Replaces the arguments that were shown.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Map<String, Value>>,
    /// By the store's clock.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<DateTime<Utc>>,
    /// The end that the person was shown.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// The request expired without a decision; a person cannot choose this.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub timeout: bool,
}

impl ApprovalAnswer {
    pub fn of(answer: &Value) -> Self {
        fields(answer)
    }

    /// Returns whether a person answered after the request had expired; an answer without a time counts as timely.
    ///
    /// The expiry that the person saw counts; `expires_at` is used for an answer without one.
    pub fn is_late(&self, expires_at: DateTime<Utc>) -> bool {
        let end = self.expires_at.unwrap_or(expires_at);
        !self.timeout && self.decided_at.is_some_and(|at| at > end)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Accept,
    #[default]
    Decline,
}

/// The reply to a server; an unreadable reply declines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ElicitationAnswer {
    #[serde(default, deserialize_with = "word")]
    pub action: Action,
    /// The content of the form; `None` if an address was visited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// For the agent; the server does not see it.
    #[serde(default, deserialize_with = "or_default")]
    pub reason: Option<String>,
}

impl ElicitationAnswer {
    pub fn of(answer: &Value) -> Self {
        fields(answer)
    }
}

/// Reads an object; serde would take a list for one as well, in the order of the fields.
fn fields<T: DeserializeOwned + Default>(answer: &Value) -> T {
    let object = Some(answer).filter(|answer| answer.is_object());
    object.and_then(|object| T::deserialize(object).ok()).unwrap_or_default()
}

/// Reads a word, or takes the default; serde would take `{"approve": null}` for one as well.
fn word<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(from)?;
    let value = Some(value).filter(Value::is_string);
    Ok(value.and_then(|word| serde_json::from_value(word).ok()).unwrap_or_default())
}

/// Reads a value, or takes the default for one of another form.
fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(from)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Threads contain answers of earlier versions and of third-party programs: only a clear yes permits a call.
    #[test]
    fn an_answer_that_cannot_be_read_denies_and_declines() {
        for damaged in [
            json!(null),
            json!("approve"),
            json!([]),
            json!(["approve"]),
            json!(["accept", {}]),
            json!({ "decision": "Approve", "action": "Accept" }),
            json!({ "decision": { "approve": null }, "action": { "accept": null } }),
            json!({ "decision": ["approve"], "action": true }),
        ] {
            assert_eq!(ApprovalAnswer::of(&damaged).decision, Word::Deny, "{damaged}");
            assert_eq!(ElicitationAnswer::of(&damaged).action, Action::Decline, "{damaged}");
        }
    }

    #[test]
    fn a_reason_that_is_no_text_leaves_an_approval_unchanged() {
        let answer = json!({ "decision": "approve", "reason": ["fine"], "decided_at": "soon" });
        let read = ApprovalAnswer::of(&answer);
        assert_eq!(read, ApprovalAnswer { decision: Word::Approve, ..ApprovalAnswer::default() });
    }

    #[test]
    fn answers_are_read_as_they_were_recorded() {
        let decided_at: DateTime<Utc> = "2026-01-02T03:04:05.678+00:00".parse().unwrap();
        let approval = ApprovalAnswer {
            decision: Word::Approve,
            reason: Some("ok".into()),
            arguments: Some(Map::from_iter([("to".to_owned(), json!("a@example.org"))])),
            decided_at: Some(decided_at),
            expires_at: Some(decided_at),
            timeout: true,
        };
        let recorded = json!(Recorded::Approval(approval.clone()));
        assert_eq!(ApprovalAnswer::of(&recorded), approval);
        let visit = ElicitationAnswer { action: Action::Accept, ..ElicitationAnswer::default() };
        let recorded = json!(Recorded::Elicitation(visit.clone()));
        assert_eq!(ElicitationAnswer::of(&recorded), visit);
        assert_eq!(json!(Recorded::Outcome(Verdict::Skip)), json!({ "outcome": "skip" }));
        assert_eq!(json!(Recorded::Other(json!("both"))), json!("both"));
    }
}
