//! The words of a call that does not end at once: questions to a person, their answers, and tasks.
//!
//! A call is a row of rounds. Each is sent once and has one reply, so that each can be recorded by itself,
//! and days may pass between two of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::call::ToolOutcome;

/// Answers by the question's key: `{"action": "accept", "content": …}`, or another action alone.
pub type Answers = BTreeMap<String, Value>;

/// One round of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallRound {
    /// Calls the tool, for the first time or with answers to what it asked.
    Call {
        arguments: Map<String, Value>,
        answers: Answers,
        /// What the server gave along with its questions, unread.
        state: Option<String>,
    },
    /// Waits until a task ends, or asks what it was not `answered`; changes nothing, so it may be gone again.
    Wait { task: TaskHandle, answered: BTreeSet<String> },
    /// Answers the questions of a task.
    Tell { task: TaskHandle, answers: Answers },
}

impl CallRound {
    /// Makes the first round of a call.
    pub fn first(arguments: Map<String, Value>) -> Self {
        Self::Call { arguments, answers: Answers::new(), state: None }
    }
}

/// What a round came to.
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
    /// The server continues by itself; the round is over.
    Task {
        #[serde(rename = "dev.perihelion/task")]
        task: TaskHandle,
    },
    /// The call has ended; how is data.
    Done(ToolOutcome),
}

/// What a server wants to know before a call can continue.
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
    /// The task that asks, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskHandle>,
    /// A server of an older protocol asked during the call, was told `cancel`, and said this. The answers need
    /// a call made again, in which whatever the tool did before it asked happens again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_off: Option<String>,
}

/// One question to a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Names it among the server's questions.
    pub key: String,
    pub message: String,
    #[serde(flatten)]
    pub wants: Wants,
}

/// What a question wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum Wants {
    /// Data that fits a JSON Schema.
    Form { requested_schema: Value },
    /// A visit to an address; what is entered there does not pass through this program.
    Url { url: String },
}

/// A call that the server carries out by itself, known by its id.
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

/// Returns the answer of a person who gave what was asked for.
pub fn accepted(content: Option<Value>) -> Value {
    match content {
        Some(content) => json!({ "action": "accept", "content": content }),
        None => json!({ "action": "accept" }),
    }
}

/// Returns the answer of somebody who refuses.
pub fn declined() -> Value {
    json!({ "action": "decline" })
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
