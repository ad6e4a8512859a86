//! A person's answer to an open question: which question, and in what form.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer_error::AnswerError;
use super::audit::Decided;
use super::{Error, Runtime};
use perihelion_engine::checkpoint::{self, OpenInterrupt};
use perihelion_engine::ids::{InterruptId, ThreadId};
use perihelion_engine::journal::Verdict;
use perihelion_mcp as mcp;
use perihelion_star::answer::{Action, ApprovalAnswer, ElicitationAnswer, Recorded};
use perihelion_star::question::kind::{APPROVAL, CLARIFICATION, ELICITATION, OUTCOME_UNKNOWN};
use perihelion_star::question::{Elicitation, Question};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To a clarification.
    Message(String),
    /// To any question, in its own form.
    Value(Value),
    /// To a request for approval, or to a server's question: yes, or done as asked.
    Approve { reason: Option<String> },
    /// For a request for approval: yes, with these arguments instead of the ones that were shown.
    Edit { arguments: Map<String, Value>, reason: Option<String> },
    /// For a request for approval: it expired.
    TimedOut,
    /// To a request for approval, or to a server's question: no.
    Deny { reason: Option<String> },
    /// To an unknown outcome: it happened, with this result.
    OutcomeDone { result: Value },
    /// To an unknown outcome: send it again.
    OutcomeRetry,
    /// To an unknown outcome: leave it.
    OutcomeSkip,
}

impl Answer {
    /// Returns the kinds of question that this answers, if it does not answer any, and the option's name.
    fn fits(&self) -> (Option<&'static [&'static str]>, &'static str) {
        match self {
            Self::Message(_) => (Some(&[CLARIFICATION]), "--message"),
            Self::Value(_) => (None, "--answer"),
            Self::Approve { .. } => (Some(&[APPROVAL, ELICITATION]), "--approve"),
            Self::Deny { .. } => (Some(&[APPROVAL, ELICITATION]), "--deny"),
            Self::Edit { .. } | Self::TimedOut => (Some(&[APPROVAL]), "a decision"),
            Self::OutcomeDone { .. } | Self::OutcomeRetry | Self::OutcomeSkip => {
                (Some(&[OUTCOME_UNKNOWN]), "--outcome")
            }
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Message(text) => Value::String(text),
            Self::Value(value) => value,
            Self::Approve { reason } => json!({ "decision": "approve", "reason": reason }),
            Self::Deny { reason } => json!({ "decision": "deny", "reason": reason }),
            Self::Edit { arguments, reason } => {
                json!({ "decision": "approve", "reason": reason, "arguments": arguments })
            }
            Self::TimedOut => json!({ "decision": "deny", "reason": "nobody decided in time" }),
            Self::OutcomeDone { result } => json!({ "outcome": "done", "result": result }),
            Self::OutcomeRetry => json!({ "outcome": "retry" }),
            Self::OutcomeSkip => json!({ "outcome": "skip" }),
        }
    }
}

impl Runtime {
    /// Records a person's answer; the thread continues with the next resume.
    ///
    /// Without an id there must be exactly one open question that the answer fits.
    ///
    /// # Errors
    /// [`AnswerError`] when no open question fits; [`checkpoint::Error::InterruptClosed`] when it was
    /// answered before.
    ///
    /// [`checkpoint::Error::InterruptClosed`]: perihelion_engine::checkpoint::Error::InterruptClosed
    pub async fn answer(
        &self,
        thread: ThreadId,
        interrupt: Option<InterruptId>,
        answer: Answer,
    ) -> Result<(), Error> {
        self.answer_by(None, thread, interrupt, answer).await
    }

    /// Records the answer of a named person, whom the audit log names with it.
    pub async fn answer_by(
        &self,
        by: Option<&str>,
        thread: ThreadId,
        interrupt: Option<InterruptId>,
        answer: Answer,
    ) -> Result<(), Error> {
        // Before anything is recorded that this program could not continue with.
        self.graph_of(thread).await?;
        let (chosen, recorded) = self.fitted(thread, interrupt, answer).await?;
        self.runner().answer(thread, chosen.id, &json!(recorded)).await?;
        let question = &Question::read(&chosen.kind, &chosen.payload.decode()?);
        let interrupt = chosen.id;
        let kind = &*chosen.kind;
        let answer = &recorded;
        self.note_decided(by, Decided { thread, interrupt, kind, question, answer }).await;
        Ok(())
    }

    /// Refuses an answer that could not be recorded now.
    pub async fn check_answer(
        &self,
        thread: ThreadId,
        interrupt: InterruptId,
        answer: Answer,
    ) -> Result<(), Error> {
        self.fitted(thread, Some(interrupt), answer).await.map(|_| ())
    }

    /// Finds the question that an answer is to, and brings the answer into the form that it is recorded in.
    async fn fitted(
        &self,
        thread: ThreadId,
        interrupt: Option<InterruptId>,
        answer: Answer,
    ) -> Result<(OpenInterrupt, Recorded), Error> {
        let open = self.runner().open_interrupts(thread).await?;
        let (kinds, option) = answer.fits();
        let chosen = match interrupt {
            Some(id) => match open.iter().find(|one| one.id == id) {
                Some(one) => one.clone(),
                None => return Err(self.not_open(thread, id, &open).await?),
            },
            None => only(thread, &open, kinds)?.clone(),
        };
        if let Some(kinds) = kinds.filter(|kinds| !kinds.contains(&&*chosen.kind)) {
            let given = option;
            let fits = kinds.join(" or ");
            let id = chosen.id;
            return Err(AnswerError::WrongKind { given, fits, kind: chosen.kind, id }.into());
        }
        let timeout = answer == Answer::TimedOut;
        let question = Question::read(&chosen.kind, &chosen.payload.decode()?);
        let recorded = match chosen.kind.as_str() {
            ELICITATION => Recorded::Elicitation(to_server(&question.into_elicitation(), answer)?),
            APPROVAL => {
                let given = decision(answer.into_value())?;
                let now = self.store().now().await?;
                let expires_at = question.into_approval().expires_at();
                Recorded::Approval(ApprovalAnswer {
                    decided_at: Some(now),
                    expires_at,
                    timeout,
                    ..given
                })
            }
            OUTCOME_UNKNOWN => Recorded::Outcome(outcome(answer.into_value())?),
            _ => Recorded::Other(answer.into_value()),
        };
        Ok((chosen, recorded))
    }

    /// Distinguishes a question that was answered from an unknown one.
    async fn not_open(
        &self,
        thread: ThreadId,
        id: InterruptId,
        open: &[OpenInterrupt],
    ) -> Result<Error, Error> {
        if self.runner().was_asked(thread, id).await? {
            return Ok(checkpoint::Error::InterruptClosed(id).into());
        }
        let open = match open {
            [] => "none".to_owned(),
            some => some.iter().map(|one| one.id.to_string()).collect::<Vec<_>>().join(", "),
        };
        Ok(AnswerError::NotOpen { id, open }.into())
    }
}

/// Writes out an answer that is one word, under the name that such words have.
fn spelled_out(value: Value, key: &str) -> Value {
    match value {
        Value::String(word) => json!({ key: word.trim().to_lowercase() }),
        other => other,
    }
}

/// Reads what became of a call whose outcome was unknown.
fn outcome(value: Value) -> Result<Verdict, AnswerError> {
    let value = spelled_out(value, "outcome");
    Verdict::deserialize(&value).map_err(|_| AnswerError::WrongForm {
        kind: OUTCOME_UNKNOWN.to_owned(),
        wanted: "done, retry or skip",
        given: value.get("outcome").unwrap_or(&value).to_string(),
    })
}

/// Reads a decision on a call, without its unused fields.
fn decision(value: Value) -> Result<ApprovalAnswer, AnswerError> {
    let wrong = |wanted, given: &Value| AnswerError::WrongForm {
        kind: APPROVAL.to_owned(),
        wanted,
        given: given.to_string(),
    };
    let mut value = spelled_out(value, "decision");
    // The form of `nodes::Verdict`.
    if let Some(fields) = value.as_object_mut().filter(|one| !one.contains_key("decision"))
        && let Some(is_approved) = fields.get("approved").and_then(Value::as_bool)
    {
        fields.remove("approved");
        let word = if is_approved { "approve" } else { "deny" };
        fields.insert("decision".to_owned(), word.into());
    }
    let word = value.get("decision").and_then(Value::as_str);
    let (Some("approve" | "deny"), Some(fields)) = (word, value.as_object()) else {
        return Err(wrong("approve or deny", value.get("decision").unwrap_or(&value)));
    };
    if let Some(arguments) = fields.get("arguments")
        && (!arguments.is_object() || word != Some("approve"))
    {
        return Err(wrong("a decision with arguments that are an object", arguments));
    }
    if let Some(reason) = fields.get("reason").filter(|one| !one.is_string() && !one.is_null()) {
        return Err(wrong("a decision with a reason that is a text", reason));
    }
    match fields.keys().find(|key| !["decision", "reason", "arguments"].contains(&key.as_str())) {
        Some(key) => Err(AnswerError::Beside(key.clone())),
        None => Ok(ApprovalAnswer::of(&value)),
    }
}

/// Converts an answer into the form for an MCP server's question: data that fits the requested form, a visited address,
/// or a refusal.
fn to_server(question: &Elicitation, answer: Answer) -> Result<ElicitationAnswer, AnswerError> {
    let (content, reason) = match answer {
        Answer::Deny { reason } => {
            return Ok(ElicitationAnswer { reason, ..ElicitationAnswer::default() });
        }
        Answer::Approve { reason } => (json!({}), reason),
        other => (other.into_value(), None),
    };
    let action = Action::Accept;
    if question.is_visit() {
        if content != json!({}) {
            return Err(AnswerError::WrongForm {
                kind: ELICITATION.to_owned(),
                wanted: "--approve once you have been at the address, or --deny",
                given: "content".to_owned(),
            });
        }
        return Ok(ElicitationAnswer { action, content: None, reason });
    }
    let schema = question.requested_schema.as_ref().unwrap_or(&Value::Null);
    let content = Some(mcp::fill_form(schema, content)?);
    Ok(ElicitationAnswer { action, content, reason })
}

fn only<'a>(
    thread: ThreadId,
    open: &'a [OpenInterrupt],
    kinds: Option<&[&str]>,
) -> Result<&'a OpenInterrupt, AnswerError> {
    let fitting: Vec<&OpenInterrupt> =
        open.iter().filter(|one| kinds.is_none_or(|kinds| kinds.contains(&&*one.kind))).collect();
    match (fitting.as_slice(), open) {
        ([one], _) => Ok(one),
        (_, []) => Err(AnswerError::NothingOpen(thread)),
        ([], [first, ..]) => Ok(first),
        (several, _) => {
            let list =
                several.iter().map(|one| format!("{} ({})", one.id, one.kind)).collect::<Vec<_>>();
            Err(AnswerError::Ambiguous(list.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_a_decision_in_either_form() {
        for (given, word) in [
            (json!("Approve"), "approve"),
            (json!({ "approved": true, "reason": "fine" }), "approve"),
            (json!({ "approved": false }), "deny"),
        ] {
            assert_eq!(json!(decision(given).unwrap())["decision"], word);
        }
        for given in [json!({ "approved": "yes" }), json!({ "approved": true, "decision": "deny" })]
        {
            assert!(decision(given).is_err());
        }
    }
}
