//! The question about an action with an unknown outcome, and the possible answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::graph::{NodeError, TaskContext};

/// Kind of the interrupt.
pub const OUTCOME_UNKNOWN: &str = "outcome_unknown";

/// A person's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case", deny_unknown_fields)]
pub enum Verdict {
    /// It happened; `result` is its result, if the person knows it.
    Done {
        /// The result; null if it is not known.
        #[serde(default)]
        result: Value,
    },
    /// It did not happen, or may happen twice: send it again.
    Retry,
    /// Skip it; the agent receives the decision.
    Skip,
}

/// An answer to the question about an unknown outcome that has another form.
#[derive(Debug, thiserror::Error)]
#[error(
    "the answer must be {{\"outcome\": \"done\", \"result\": …}}, {{\"outcome\": \"retry\"}} or {{\"outcome\": \"skip\"}}: {0}"
)]
pub struct NoVerdict(serde_json::Error);

/// Checks that an answer fits the kind of its question, before it is recorded permanently.
///
/// # Errors
/// [`NoVerdict`].
pub fn check_answer(kind: &str, answer: &Value) -> Result<(), NoVerdict> {
    if kind == OUTCOME_UNKNOWN {
        verdict(answer)?;
    }
    Ok(())
}

pub(super) fn verdict(answer: &Value) -> Result<Verdict, NoVerdict> {
    Verdict::deserialize(answer).map_err(NoVerdict)
}

/// The question what became of an action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutcomeUnknown {
    /// `server.tool`, or the effect's name.
    pub tool: String,
    /// The request, as it was sent.
    pub request: Value,
    /// The key that each attempt carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// How many times it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Why nobody knows.
    pub reason: String,
    /// The outcomes that an answer can name: `done`, `retry`, `skip`.
    #[serde(default)]
    pub choices: Vec<String>,
    /// The problem with the previous answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl OutcomeUnknown {
    /// Makes the question about an action.
    pub fn of(tool: &str, request: Value, reason: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            request,
            reason: reason.to_owned(),
            choices: ["done", "retry", "skip"].map(str::to_owned).into(),
            ..Self::default()
        }
    }

    /// Puts the question to a person; an answer that is no verdict is asked for again.
    ///
    /// # Errors
    /// [`NodeError::Interrupted`] until it is answered: pass it on with `?`.
    pub async fn put(mut self, ctx: &TaskContext) -> Result<Verdict, NodeError> {
        loop {
            let answer = ctx.interrupt(OUTCOME_UNKNOWN, &self).await?;
            match verdict(&answer) {
                Ok(verdict) => return Ok(verdict),
                Err(problem) => self.problem = Some(problem.to_string()),
            }
        }
    }
}
