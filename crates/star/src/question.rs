//! What a run asks people, and how they answer: one type for the star, the command line and whatever else shows it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{GraphState, GraphUpdate, Message, Routing, Sources, breaker, dispatch, node, taint};
use perihelion_engine::graph::{Context, Interrupt, NodeError, NodeOutput, TaskContext};

pub use perihelion_engine::journal::OutcomeUnknown;

/// Kinds of questions, as they stand in an interrupt.
pub mod kind {
    /// Something about the request is to be made clear.
    pub const CLARIFICATION: &str = "clarification";
    /// A tool call is to be allowed.
    pub const APPROVAL: &str = "approval";
    /// Somebody has to say what became of a call.
    pub use perihelion_engine::journal::OUTCOME_UNKNOWN;
    /// A server wants to know something.
    pub const ELICITATION: &str = "elicitation";
}

/// A question to a person; as JSON it is the payload of its interrupt.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Question {
    /// Kind `approval`.
    Approval(Approval),
    OutcomeUnknown(OutcomeUnknown),
    /// Kind `elicitation`.
    Elicitation(Elicitation),
    /// Kind `clarification`.
    Clarification {
        question: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
        /// The agent that asks; the supervisor where none is named.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// A kind of a graph's own.
    Other(Value),
}

/// Whether a call may be made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Approval {
    pub agent: String,
    pub server: String,
    pub tool: String,
    pub arguments: Map<String, Value>,
    pub description: String,
    pub choices: Vec<String>,
    /// Why a person is asked.
    pub reasons: Vec<String>,
    pub tainted_by: Sources,
    /// Binds the answer to server, tool and exact arguments.
    pub call_sha256: String,
    pub asked_at: String,
    pub expires_at: String,
}

/// What a server wants to know before a call can end.
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

impl Approval {
    /// Returns the call's name, as people are shown it.
    pub fn name(&self) -> String {
        format!("{}.{}", self.server, self.tool)
    }

    /// Returns when it was asked; none where that cannot be read.
    pub fn asked_at(&self) -> Option<DateTime<Utc>> {
        self.asked_at.parse().ok()
    }

    /// Returns until when it can be answered; none where that cannot be read.
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
    /// Reads what an interrupt asks.
    pub fn of(interrupt: &Interrupt) -> Self {
        Self::read(&interrupt.kind, &interrupt.payload)
    }

    /// Reads the payload of an interrupt of a kind; one that does not fit is kept as it is.
    pub fn read(kind: &str, payload: &Value) -> Self {
        fn of<T: serde::de::DeserializeOwned>(payload: &Value) -> Option<T> {
            serde_json::from_value(payload.clone()).ok()
        }
        #[derive(Deserialize)]
        struct Asked {
            question: String,
            #[serde(default)]
            options: Vec<String>,
            agent: Option<String>,
        }
        let read = match kind {
            kind::APPROVAL => of(payload).map(Self::Approval),
            kind::OUTCOME_UNKNOWN => of(payload).map(Self::OutcomeUnknown),
            kind::ELICITATION => of(payload).map(Self::Elicitation),
            kind::CLARIFICATION => of(payload).map(|Asked { question, options, agent }| {
                Self::Clarification { question, options, agent }
            }),
            _ => None,
        };
        read.unwrap_or_else(|| Self::Other(payload.clone()))
    }

    /// Returns its kind, as it stands in the interrupt; none for a graph's own.
    pub fn kind(&self) -> Option<&'static str> {
        match self {
            Self::Approval(_) => Some(kind::APPROVAL),
            Self::OutcomeUnknown(_) => Some(kind::OUTCOME_UNKNOWN),
            Self::Elicitation(_) => Some(kind::ELICITATION),
            Self::Clarification { .. } => Some(kind::CLARIFICATION),
            Self::Other(_) => None,
        }
    }

    /// Returns the agent that asks, where the question says so.
    pub fn agent(&self) -> Option<&str> {
        let agent = match self {
            Self::Approval(approval) => Some(approval.agent.as_str()),
            Self::Elicitation(elicitation) => Some(elicitation.agent.as_str()),
            Self::Clarification { agent, .. } => agent.as_deref(),
            Self::OutcomeUnknown(_) => None,
            Self::Other(payload) => payload.get("agent").and_then(Value::as_str),
        };
        agent.filter(|agent| !agent.is_empty())
    }

    /// Returns the request for approval that it is; an empty one for a question that is none, or cannot be read as one.
    pub fn into_approval(self) -> Approval {
        match self {
            Self::Approval(approval) => approval,
            _ => Approval::default(),
        }
    }

    /// Returns the server's question that it is; an empty form for a question that is none, or cannot be read as one.
    pub fn into_elicitation(self) -> Elicitation {
        match self {
            Self::Elicitation(elicitation) => elicitation,
            _ => Elicitation::default(),
        }
    }

    /// Puts the question and returns the answer once there is one.
    pub(super) async fn put(&self, ctx: &TaskContext) -> Result<Value, NodeError> {
        ctx.interrupt(self.kind().unwrap_or("question"), self).await
    }
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
const MOST: u32 = 5;

/// Returns what is wrong with one more question.
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
/// It is committed first, so that the answer finds the same question after days, whatever changed
/// in the menu or the prompts meanwhile.
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
) -> Result<NodeOutput<GraphState>, NodeError> {
    let asked =
        Question::Clarification { question: question.clone(), options: Vec::new(), agent: None };
    let answer = asked.put(ctx).await?;
    let state = ctx.state();
    let place = |who| (state.turn, ctx.place().step, who);
    let question = Message {
        name: Some(node::SUPERVISOR.to_owned()),
        tainted_by: taint::of_talk(state),
        ..Message::new(place("question"), "assistant", question)
    };
    let answer = Message::new(place("clarification"), "user", text_of(&answer));
    let messages = [question, answer].into_iter().collect();
    let routing = Routing { question: None, ..state.routing.clone() };
    Ok(dispatch::to(GraphUpdate::new().messages(messages).routing(routing), node::SUPERVISOR))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Everybody who shows or answers questions reads them so: what was stored must come back, and damage must not stop them.
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
