//! The performer of tool calls, and the terms of calls with several rounds: questions, their answers, and tasks.
//!
//! A call is a row of rounds. Each is sent once and has one reply, so each can be recorded separately, and days can
//! pass between two of them.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::{Result, error::Error, server::ServerStatus, tool::CallPolicy};

/// Answers by the question's key: `{"action": "accept", "content": …}`, or another action alone.
pub type Answers = BTreeMap<String, Value>;

#[derive(Clone, Debug, PartialEq)]
pub enum CallRound {
    /// Calls the tool, for the first time or with answers to its questions.
    Call {
        arguments: Map<String, Value>,
        answers: Answers,
        /// The server's data with its questions, unread.
        state: Option<String>,
    },
    /// Waits until a task ends, or asks a question that was not `answered`; it changes nothing outside, so it can be
    /// repeated.
    Wait {
        task: TaskHandle,
        answered: BTreeSet<String>,
    },
    Tell {
        task: TaskHandle,
        answers: Answers,
    },
}

impl CallRound {
    pub fn first(arguments: Map<String, Value>) -> Self {
        Self::Call { arguments, answers: Answers::new(), state: None }
    }
}

/// The result of a round.
///
/// As JSON a finished call is its outcome alone, as it was recorded before there was anything else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// The server needs answers; the round is over.
    Asked {
        #[serde(rename = "dev.perihelion/asked")]
        asked: Asked,
    },
    /// The server continues in the background; the round is over.
    Task {
        #[serde(rename = "dev.perihelion/task")]
        task: TaskHandle,
    },
    /// The call has ended; how is data.
    Done(ToolOutcome),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// For a person, in the server's order.
    pub questions: Vec<Question>,
    /// Questions that are never put to a person, with the answers they get.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settled: Answers,
    /// Goes back unread with the answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskHandle>,
    /// A server of an older protocol asked during the call, got `cancel`, and returned this. The answers need a call
    /// made again, in which whatever the tool did before it asked happens again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_off: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Names it among the server's questions.
    pub key: String,
    pub message: String,
    #[serde(flatten)]
    pub wants: Wants,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum Wants {
    /// Data that fits a JSON Schema.
    Form { requested_schema: Value },
    /// A visit to an address; data that is entered there does not pass through this program.
    Url { url: String },
}

/// A call that the server performs in the background, known by its ID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskHandle {
    pub id: String,
    /// How often the server wants to be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_ms: Option<u64>,
    /// How long the server keeps the task after it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

pub fn accepted(content: Option<Value>) -> Value {
    match content {
        Some(content) => json!({ "action": "accept", "content": content }),
        None => json!({ "action": "accept" }),
    }
}

pub fn declined() -> Value {
    json!({ "action": "decline" })
}

/// The field in which a bundled server finds the call's tenant.
pub const TENANT_META: &str = "dev.perihelion/tenant";

/// The field in which a server finds entries of the request's context that are no arguments.
pub const CONTEXT_META: &str = "dev.perihelion/context";

#[derive(Clone, Debug, Default)]
pub struct CallContext {
    /// Stable over every attempt of the same call; sent in `_meta` under `dev.perihelion/idempotency-key`.
    pub idempotency_key: String,
    /// The tenant of the call; sent in `_meta` under [`TENANT_META`] to bundled servers.
    pub tenant: String,
    /// W3C `traceparent`, sent in `_meta` where present.
    pub traceparent: Option<String>,
    /// The rules under which the call was decided on; it is not sent if stricter ones apply by now.
    pub under: Option<CallPolicy>,
    /// Receives the server's progress; reports that exceed the space are left out.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// Entries of the request's context that no model sees; sent in `_meta` under [`CONTEXT_META`].
    pub beside: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    pub done: f64,
    /// The final value of `done`, if it is known.
    pub total: Option<f64>,
    /// One short line.
    pub message: String,
}

/// The identifiers of an answered call, by which a server's own log can be searched for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Via {
    pub protocol_version: String,
    /// `pipe` (stdio) or `tcp` (HTTP), as the OpenTelemetry conventions name transports.
    pub transport: String,
    /// The session of a streamable HTTP server that keeps one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// ID of the JSON-RPC request; of the last one, if the call was repeated.
    pub request_id: String,
}

/// How a call that reached the server ended; a tool's own error is data, not an `Err`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolOutcome {
    pub is_error: bool,
    /// All text content, joined by newlines; non-text blocks are described in brackets.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// `None` in records of versions that did not store it, and if a person entered the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
}

impl ToolOutcome {
    /// Makes an outcome that explains why there is no result.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { is_error: true, text: text.into(), structured: None, via: None }
    }
}

#[async_trait]
pub trait ToolHost: Send + Sync {
    /// Returns the servers that could be scanned and those that could not, in the file's order.
    async fn scan(&self) -> Vec<ServerStatus>;

    /// Performs one round of a call, once; never retries a call that may have run.
    ///
    /// # Errors
    /// [`Error::NotSent`] and similar errors if the call certainly did not run; [`Error::Unknown`] if it may have.
    async fn exchange(
        &self,
        server: &str,
        tool: &str,
        round: CallRound,
        context: CallContext,
    ) -> Result<Reply>;

    /// Calls a tool that neither asks questions nor becomes a task; otherwise returns an error.
    async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        context: CallContext,
    ) -> Result<ToolOutcome> {
        let unknown = |reason: &str| Error::Unknown {
            server: server.to_owned(),
            tool: tool.to_owned(),
            reason: reason.into(),
        };
        match self.exchange(server, tool, CallRound::first(arguments), context).await? {
            Reply::Done(outcome) => Ok(outcome),
            Reply::Asked { .. } => {
                Err(unknown("the server asked for input, which this caller cannot give"))
            }
            Reply::Task { .. } => {
                Err(unknown("the server made a task of it, which this caller cannot follow"))
            }
        }
    }

    /// Returns why calls of a server are refused at present, if they are: its circuit breaker is open.
    ///
    /// Prompts of every thread contain it, so it must not contain text of a server.
    fn failure(&self, _server: &str) -> Option<String> {
        None
    }

    /// Returns the present policy of a tool's calls, if it is known without asking its server.
    fn call_policy(&self, _server: &str, _tool: &str) -> Option<CallPolicy> {
        None
    }

    /// Returns how many calls of one answer the server is given at a time; more than that would only wait.
    fn at_once(&self, _server: &str) -> usize {
        1
    }

    /// Closes every session and ends every child process, in parallel.
    async fn close(&self);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_recorded_before_there_were_call_rounds_reads_as_the_end_of_the_call() {
        let recorded = json!({ "is_error": false, "text": "3 rows" });
        let reply: Reply = serde_json::from_value(recorded.clone()).unwrap();
        assert!(matches!(&reply, Reply::Done(outcome) if outcome.text == "3 rows"));
        assert_eq!(serde_json::to_value(&reply).unwrap(), recorded);
    }

    #[test]
    fn questions_and_tasks_survive_the_journal() {
        let question = Question {
            key: "q".into(),
            message: "Which?".into(),
            wants: Wants::Url { url: "https://example.org/".into() },
        };
        let asked =
            Asked { questions: vec![question], state: Some("s".into()), ..Asked::default() };
        let task = TaskHandle { id: "t".into(), poll_ms: Some(5), ttl_ms: None };
        for reply in [Reply::Asked { asked }, Reply::Task { task }] {
            let json = serde_json::to_value(&reply).unwrap();
            assert_eq!(serde_json::from_value::<Reply>(json).unwrap(), reply);
        }
    }
}
