//! The questions of a run to people, and their answers: one type for the star, the command line and every other
//! display.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    GraphState, GraphUpdate, Message, Result, Routing, Sources, breaker, dispatch, node, taint,
};
use perihelion_engine::graph::{Context, Interrupt, NodeError, NodeOutput, TaskContext};

pub use perihelion_engine::journal::OutcomeUnknown;

pub mod kind {
    pub const CLARIFICATION: &str = "clarification";
    pub const APPROVAL: &str = "approval";
    pub use perihelion_engine::journal::OUTCOME_UNKNOWN;
    pub const ELICITATION: &str = "elicitation";
}

/// A question to a person; as JSON it is the payload of its interrupt.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Question {
    Approval(Approval),
    OutcomeUnknown(OutcomeUnknown),
    Elicitation(Elicitation),
    Clarification(Clarification),
    /// A kind of a graph's own.
    Other(Value),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Approval {
    pub agent: String,
    pub server: String,
    pub tool: String,
    pub arguments: Map<String, Value>,
    pub description: String,
    pub choices: Vec<String>,
    pub reasons: Vec<String>,
    pub tainted_by: Sources,
    /// Binds the answer to server, tool and exact arguments.
    pub call_sha256: String,
    pub asked_at: String,
    pub expires_at: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Elicitation {
    pub agent: String,
    pub server: String,
    pub tool: String,
    pub arguments: Map<String, Value>,
    pub message: String,
    pub choices: Vec<String>,
    /// `form` or `url`.
    pub mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// A question to the user, with possible answers if there are any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clarification {
    pub question: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The agent that asks; the supervisor by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl Clarification {
    pub fn new(question: impl Into<String>) -> Self {
        Self { question: question.into(), ..Self::default() }
    }

    #[must_use]
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }
}

impl Approval {
    pub fn name(&self) -> String {
        format!("{}.{}", self.server, self.tool)
    }

    /// Returns when it was asked; `None` if that cannot be read.
    pub fn asked_at(&self) -> Option<DateTime<Utc>> {
        self.asked_at.parse().ok()
    }

    /// Returns when it expires; `None` if that cannot be read.
    pub fn expires_at(&self) -> Option<DateTime<Utc>> {
        self.expires_at.parse().ok()
    }
}

impl Elicitation {
    /// Returns whether the person is to visit an address, and fills in no form.
    pub fn is_visit(&self) -> bool {
        self.mode == "url"
    }
}

impl Question {
    pub fn of(interrupt: &Interrupt) -> Self {
        Self::read(&interrupt.kind, &interrupt.payload)
    }

    /// Reads the payload of an interrupt of a kind; a payload of another form stays unchanged.
    pub fn read(kind: &str, payload: &Value) -> Self {
        fn of<T: serde::de::DeserializeOwned>(payload: &Value) -> Option<T> {
            serde_json::from_value(payload.clone()).ok()
        }
        let read = match kind {
            kind::APPROVAL => of(payload).map(Self::Approval),
            kind::OUTCOME_UNKNOWN => of(payload).map(Self::OutcomeUnknown),
            kind::ELICITATION => of(payload).map(Self::Elicitation),
            kind::CLARIFICATION => of(payload).map(Self::Clarification),
            _ => None,
        };
        read.unwrap_or_else(|| Self::Other(payload.clone()))
    }

    /// Returns its kind, the word in the interrupt; `None` for a graph's own kind.
    pub fn kind(&self) -> Option<&'static str> {
        match self {
            Self::Approval(_) => Some(kind::APPROVAL),
            Self::OutcomeUnknown(_) => Some(kind::OUTCOME_UNKNOWN),
            Self::Elicitation(_) => Some(kind::ELICITATION),
            Self::Clarification(_) => Some(kind::CLARIFICATION),
            Self::Other(_) => None,
        }
    }

    pub fn agent(&self) -> Option<&str> {
        let agent = match self {
            Self::Approval(approval) => Some(approval.agent.as_str()),
            Self::Elicitation(elicitation) => Some(elicitation.agent.as_str()),
            Self::Clarification(clarification) => clarification.agent.as_deref(),
            Self::OutcomeUnknown(_) => None,
            Self::Other(payload) => payload.get("agent").and_then(Value::as_str),
        };
        agent.filter(|agent| !agent.is_empty())
    }

    /// Returns the request for approval; empty for another or an unreadable question.
    pub fn into_approval(self) -> Approval {
        match self {
            Self::Approval(approval) => approval,
            _ => Approval::default(),
        }
    }

    /// Returns the server's question; an empty form for another or an unreadable question.
    pub fn into_elicitation(self) -> Elicitation {
        match self {
            Self::Elicitation(elicitation) => elicitation,
            _ => Elicitation::default(),
        }
    }

    /// Puts the question and returns the answer once there is one.
    pub(super) async fn put(&self, ctx: &TaskContext) -> Result<Value> {
        ctx.interrupt(self.kind().unwrap_or("question"), self).await
    }
}

/// Asks the user for a clarification, and returns the answer once there is one.
pub(super) async fn clarify(ctx: &TaskContext, clarification: Clarification) -> Result<String> {
    let answer = Question::Clarification(clarification).put(ctx).await?;
    Ok(text_of(&answer))
}

/// Returns every answer, or everything that people are asked, or the first other error.
pub(super) fn all<T>(answers: impl IntoIterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut given = Vec::new();
    let mut open = Vec::new();
    for answer in answers {
        match answer {
            Ok(answer) => given.push(answer),
            Err(NodeError::Interrupted(more)) => open.extend(more),
            Err(error) => return Err(error),
        }
    }
    if open.is_empty() { Ok(given) } else { Err(NodeError::Interrupted(open)) }
}

/// Returns who asks an open question: the agent that it names, else its node.
pub fn asked_by(interrupt: &Interrupt) -> String {
    let question = Question::of(interrupt);
    question.agent().map_or_else(|| interrupt.node.clone(), str::to_owned)
}

/// Lets questions of an agent's own graph be the agent's, by whose name people know it.
pub(super) fn asked_as(agent: &str, error: NodeError) -> NodeError {
    let NodeError::Interrupted(mut open) = error else { return error };
    open.iter_mut().for_each(|question| agent.clone_into(&mut question.node));
    NodeError::Interrupted(open)
}

/// Reads an answer to a clarification: a text, an object with a `text`, or anything else as JSON.
pub fn text_of(answer: &Value) -> String {
    let text = answer.as_str().or_else(|| answer.get("text").and_then(Value::as_str));
    text.map_or_else(|| answer.to_string(), str::to_owned)
}

/// Questions that one request may put to the user.
pub(super) const MOST: u32 = 5;

pub(super) fn too_many(state: &GraphState) -> Option<String> {
    (state.routing.asked >= MOST).then(|| {
        format!(
            "the user was asked {MOST} questions for this request already: decide by what is known, make assumptions and \
             state them, or choose qa"
        )
    })
}

/// Keeps the question for the next step, which puts it.
///
/// It is committed first, so the answer finds the same question days later, after changes to the catalog or the
/// prompts.
pub(super) fn prepare(
    state: &GraphState,
    update: GraphUpdate,
    question: String,
) -> NodeOutput<GraphState> {
    let asked = state.routing.asked + 1;
    let routing = Routing { question: Some(question), asked, ..breaker::cleared(&state.routing) };
    dispatch::to(update.routing(routing), node::SUPERVISOR)
}

/// Suspends the run with the question and continues with the answer as a part of the history.
pub(super) async fn put(
    ctx: &Context<GraphState>,
    question: String,
) -> Result<NodeOutput<GraphState>> {
    let answer = clarify(ctx, Clarification::new(question.clone())).await?;
    let state = ctx.state();
    let place = |who| (state.turn, ctx.place().step, who);
    let question = Message {
        name: Some(node::SUPERVISOR.to_owned()),
        tainted_by: taint::of_talk(state),
        ..Message::new(place("question"), "assistant", question)
    };
    let answer = Message::new(place("clarification"), "user", answer);
    let messages = [question, answer].into_iter().collect();
    let routing = Routing { question: None, ..state.routing.clone() };
    Ok(dispatch::to(GraphUpdate::new().messages(messages).routing(routing), node::SUPERVISOR))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// All code that shows or answers questions reads them this way: stored questions must come back, even damaged
    /// ones.
    #[test]
    fn an_unreadable_question_is_preserved_unchanged() {
        for kind in
            [kind::APPROVAL, kind::OUTCOME_UNKNOWN, kind::ELICITATION, kind::CLARIFICATION, "vote"]
        {
            for payload in [json!(null), json!("?"), json!({ "server": 7, "question": [] })] {
                let read = Question::read(kind, &payload);
                assert_eq!(read, Question::Other(payload.clone()), "{kind}: {payload}");
                assert_eq!(read.agent(), None);
                assert_eq!(read.into_approval(), Approval::default());
            }
        }
        let vote = Question::read("vote", &json!({ "agent": "jury", "choices": ["a"] }));
        assert_eq!(vote.agent(), Some("jury"), "a graph's own question names its agent so");
    }

    #[test]
    fn a_stored_question_is_read_unchanged() {
        let approval = Approval {
            agent: "mcp_agent_mail".into(),
            server: "mail".into(),
            tool: "send".into(),
            expires_at: "2026-01-02T03:04:05+00:00".into(),
            ..Approval::default()
        };
        let asked = Question::Approval(approval.clone());
        let read = Question::read(kind::APPROVAL, &json!(asked));
        assert_eq!(read, asked);
        assert_eq!(approval.name(), "mail.send");
        assert!(approval.expires_at().is_some() && approval.asked_at().is_none());
    }
}
