//! What a person is asked, and can answer, when nobody knows whether an action happened.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Kind of the interrupt.
pub const OUTCOME_UNKNOWN: &str = "outcome_unknown";

/// A person's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case", deny_unknown_fields)]
pub enum Verdict {
    /// It happened; `result` is what it gave, as far as the person knows.
    Done {
        #[serde(default)]
        result: Value,
    },
    /// It did not happen, or may happen twice: send it again.
    Retry,
    /// Leave it; the agent is told.
    Skip,
}

/// Checks that an answer fits the kind of its question, before it is recorded for good.
///
/// # Errors
/// A sentence that says what the answer must look like.
pub fn check_answer(kind: &str, answer: &Value) -> Result<(), String> {
    if kind == OUTCOME_UNKNOWN {
        verdict(answer)?;
    }
    Ok(())
}

/// Reads a verdict.
pub(super) fn verdict(answer: &Value) -> Result<Verdict, String> {
    serde_json::from_value(answer.clone()).map_err(|error| {
        format!(
            "the answer must be {{\"outcome\": \"done\", \"result\": …}}, {{\"outcome\": \"retry\"}} or {{\"outcome\": \"skip\"}}: {error}"
        )
    })
}

/// Makes the question.
pub(super) fn question(
    name: &str,
    request: &Value,
    key: &str,
    attempt: u32,
    reason: &str,
) -> Value {
    json!({
        "tool": name,
        "request": request,
        "idempotency_key": key,
        "attempt": attempt,
        "reason": reason,
        "choices": ["done", "retry", "skip"],
    })
}
