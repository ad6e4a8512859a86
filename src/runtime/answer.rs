//! A person's answer to an open question: which question, and in what form.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer_error::AnswerError;
use super::audit::Decided;
use super::{Error, Runtime};
use crate::checkpoint::{self, EffectKind, OpenInterrupt};
use crate::ids::{InterruptId, ThreadId};
use crate::journal::Verdict;
use crate::mcp;
use crate::swarm::question::kind::{APPROVAL, CLARIFICATION, ELICITATION, OUTCOME_UNKNOWN};
use crate::swarm::question::{Approval, Elicitation, Question};

/// An answer as a person gives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To a clarification.
    Message(String),
    /// To any question, in its own form.
    Value(Value),
    /// To a request for approval, or to a server's question: yes, or done as asked.
    Approve { reason: Option<String> },
    /// To a request for approval: yes, with these arguments in the place of those that were shown.
    Edit { arguments: Map<String, Value>, reason: Option<String> },
    /// To a request for approval: nobody decided in time.
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
    /// [`checkpoint::Error::InterruptClosed`]: crate::checkpoint::Error::InterruptClosed
    pub async fn answer(
        &self,
        thread: ThreadId,
        interrupt: Option<InterruptId>,
        answer: Answer,
    ) -> Result<(), Error> {
        self.answer_by(None, thread, interrupt, answer).await
    }

    /// Records an answer of somebody named, who stands in the audit with it.
    ///
    /// # Errors
    /// As [`Runtime::answer`].
    pub async fn answer_by(
        &self,
        by: Option<&str>,
        thread: ThreadId,
        interrupt: Option<InterruptId>,
        answer: Answer,
    ) -> Result<(), Error> {
        let (chosen, value) = self.fitted(thread, interrupt, answer).await?;
        self.runner().answer(thread, chosen.id, &value).await?;
        let question = &Question::read(&chosen.kind, &chosen.payload.decode()?);
        let interrupt = chosen.id;
        let kind = &*chosen.kind;
        let answer = &value;
        self.note_decided(by, Decided { thread, interrupt, kind, question, answer }).await;
        Ok(())
    }

    /// Refuses an answer that could not be recorded now.
    ///
    /// # Errors
    /// As [`Runtime::answer`].
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
    ) -> Result<(OpenInterrupt, Value), Error> {
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
        let in_time = answer != Answer::TimedOut;
        let question = Question::read(&chosen.kind, &chosen.payload.decode()?);
        let value = match chosen.kind.as_str() {
            ELICITATION => to_server(&question.into_elicitation(), answer)?,
            APPROVAL => {
                let value = in_form(APPROVAL, answer.into_value())?;
                decided(value, self.store().now().await?, &question.into_approval())
            }
            kind => in_form(kind, answer.into_value())?,
        };
        Ok((chosen, if in_time { value } else { timed_out(value) }))
    }

    /// Tells a question of this thread that was answered before from one that it never asked.
    async fn not_open(
        &self,
        thread: ThreadId,
        id: InterruptId,
        open: &[OpenInterrupt],
    ) -> Result<Error, Error> {
        let asked = self.store().effects(thread, None).await?;
        if asked.iter().any(|row| row.kind == EffectKind::Interrupt && row.key == id.0.as_bytes()) {
            return Ok(checkpoint::Error::InterruptClosed(id).into());
        }
        let open = match open {
            [] => "none".to_owned(),
            some => some.iter().map(|one| one.id.to_string()).collect::<Vec<_>>().join(", "),
        };
        Ok(AnswerError::NotOpen { id, open }.into())
    }
}

/// Brings an answer into the form that its kind of question is read in.
fn in_form(kind: &str, value: Value) -> Result<Value, AnswerError> {
    let (key, wanted, choices): (_, _, &[&str]) = match kind {
        APPROVAL => ("decision", "approve or deny", &["approve", "deny"]),
        OUTCOME_UNKNOWN => ("outcome", "done, retry or skip", &[]),
        _ => return Ok(value),
    };
    let value = match value {
        Value::String(word) => json!({ key: word.trim().to_lowercase() }),
        other => other,
    };
    let fits = match kind {
        OUTCOME_UNKNOWN => serde_json::from_value::<Verdict>(value.clone()).is_ok(),
        _ => value.get(key).and_then(Value::as_str).is_some_and(|word| choices.contains(&word)),
    };
    if let Some(arguments) = value.get("arguments").filter(|_| kind == APPROVAL && fits) {
        let kind = kind.to_owned();
        let wanted = "a decision with arguments that are an object";
        if !arguments.is_object() || value[key] != "approve" {
            return Err(AnswerError::WrongForm { kind, wanted, given: arguments.to_string() });
        }
    }
    let beside = |key: &&String| !["decision", "reason", "arguments"].contains(&key.as_str());
    let mut keys = value.as_object().into_iter().flat_map(serde_json::Map::keys);
    if let Some(key) = keys.find(beside).filter(|_| fits && kind == APPROVAL) {
        return Err(AnswerError::Beside(key.clone()));
    }
    if fits {
        return Ok(value);
    }
    let given = value.get(key).unwrap_or(&value).to_string();
    Err(AnswerError::WrongForm { kind: kind.to_owned(), wanted, given })
}

/// Brings an answer into the form that an MCP server's question is answered in: what is in it fits the
/// form that was asked for, or the address was visited, or it is a refusal.
fn to_server(question: &Elicitation, answer: Answer) -> Result<Value, AnswerError> {
    let (content, reason) = match answer {
        Answer::Deny { reason } => return Ok(json!({ "action": "decline", "reason": reason })),
        Answer::Approve { reason } => (json!({}), reason),
        other => (other.into_value(), None),
    };
    if question.is_visit() {
        if content != json!({}) {
            return Err(AnswerError::WrongForm {
                kind: ELICITATION.to_owned(),
                wanted: "--approve once you have been at the address, or --deny",
                given: "content".to_owned(),
            });
        }
        return Ok(json!({ "action": "accept", "reason": reason }));
    }
    let schema = question.requested_schema.as_ref().unwrap_or(&Value::Null);
    let content = mcp::fill_form(schema, content).map_err(AnswerError::Unfit)?;
    Ok(json!({ "action": "accept", "content": content, "reason": reason }))
}

/// Notes when an approval was decided, by the clock that the request's end was set by and by no other, and the end
/// that the person was shown.
fn decided(mut value: Value, now: DateTime<Utc>, question: &Approval) -> Value {
    let end = Some(&question.expires_at).filter(|end| !end.is_empty());
    value["decided_at"] = json!(now.to_rfc3339());
    value["expires_at"] = json!(end);
    value
}

/// Marks an answer as none of a person's.
fn timed_out(mut value: Value) -> Value {
    value["timeout"] = json!(true);
    value
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
