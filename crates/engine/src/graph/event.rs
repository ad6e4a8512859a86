//! The events of a run: one typed stream, and the modes that filter it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Interrupt, State};

/// A filter on the events of a run, with the names of LangGraph's stream modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamMode {
    /// The whole state after each step.
    Values,
    /// What each node wrote.
    Updates,
    /// Pieces of a streamed answer: objects whose `text` continues the previous object with the same other fields.
    Messages,
    /// Starts and ends of tasks.
    Tasks,
    /// Commits.
    Checkpoints,
    /// Payloads of [`TaskContext::emit`](super::TaskContext::emit).
    Custom,
    /// Tasks and checkpoints.
    Debug,
}

/// How a run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndStatus {
    /// It reached the end of the graph.
    Done,
    /// It waits for a person.
    Interrupted,
    /// It is left to the workers.
    Queued,
    /// It was stopped and can be resumed.
    Cancelled,
    /// It failed; a resume tries the failed step again.
    Failed,
    /// A status of a later version; the run has ended.
    #[serde(other)]
    Other,
}

/// One event of a run; the field `type` of its JSON form is its name.
///
/// `step` is the number of the super-step in its thread, from 1. `task` is the index of the task in the frontier of the step,
/// from 0, and `node` is the name of its node. `attempt` is 1 for the first attempt under the retry policy.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", bound = "")]
#[expect(missing_docs, reason = "the enum describes the fields that its variants share")]
pub enum RunEvent<S: State> {
    /// A task starts (or starts again, with a higher attempt).
    TaskStarted { step: u64, task: u32, node: String, attempt: u32, input: Option<Value> },
    /// A task ended; `error` is set if it failed finally, `retry` if another attempt follows.
    TaskEnded { step: u64, task: u32, node: String, error: Option<String>, retry: bool },
    /// A task's update, in frontier order, when its step is complete.
    Update { step: u64, node: String, update: Value },
    /// The state after a step.
    Values { step: u64, state: Arc<S> },
    /// A step is durable.
    Checkpoint { step: u64, next: Vec<String> },
    /// A node published a payload in the mode `Messages` or `Custom`.
    Published { mode: StreamMode, step: u64, task: u32, node: String, payload: Value },
    /// The run waits for a person; `asking` has the task of each question, or is empty in events of older versions.
    Interrupted {
        step: u64,
        interrupts: Vec<Interrupt>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        asking: Vec<u32>,
    },
    /// A step begins again in a later run; events of its tasks after this one replace their earlier events.
    StepRestarted { step: u64 },
    /// The run has ended; only the [`bus`](crate::bus) has this event.
    RunEnded { step: u64, status: EndStatus, error: Option<String> },
    /// An event of a subgraph as JSON, with the namespace of the subgraph and the modes that show the event.
    Nested { namespace: String, modes: Vec<StreamMode>, event: Value },
}

/// The parts of a subgraph's event that do not depend on the type of its state.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SubgraphEvent {
    Published {
        mode: StreamMode,
        payload: Value,
    },
    #[serde(other)]
    Other,
}

impl<S: State> RunEvent<S> {
    /// Returns the payload that a node of this graph or of a subgraph published in the `custom` mode.
    pub fn custom(&self) -> Option<Value> {
        match self {
            Self::Published { mode: StreamMode::Custom, payload, .. } => Some(payload.clone()),
            Self::Nested { event, .. } => match SubgraphEvent::deserialize(event).ok()? {
                SubgraphEvent::Published { mode: StreamMode::Custom, payload } => Some(payload),
                SubgraphEvent::Published { .. } | SubgraphEvent::Other => None,
            },
            _ => None,
        }
    }

    /// Returns the modes that show this event.
    pub fn modes(&self) -> Vec<StreamMode> {
        match self {
            Self::TaskStarted { .. } | Self::TaskEnded { .. } => {
                vec![StreamMode::Tasks, StreamMode::Debug]
            }
            Self::Update { .. } => vec![StreamMode::Updates],
            Self::Values { .. } => vec![StreamMode::Values],
            Self::Checkpoint { .. } => vec![StreamMode::Checkpoints, StreamMode::Debug],
            Self::Published { mode, .. } => vec![*mode],
            Self::Interrupted { .. } => vec![StreamMode::Updates, StreamMode::Values],
            Self::StepRestarted { .. } | Self::RunEnded { .. } => vec![StreamMode::Debug],
            Self::Nested { modes, .. } => modes.clone(),
        }
    }

    /// Returns whether a mode shows this event.
    pub fn is_in(&self, mode: StreamMode) -> bool {
        self.modes().contains(&mode)
    }

    /// Makes this event of a subgraph an event of the parent graph; a nested event keeps its namespace.
    pub fn into_nested<P: State>(self, namespace: &str) -> RunEvent<P> {
        match self {
            Self::Nested { namespace, modes, event } => {
                RunEvent::Nested { namespace, modes, event }
            }
            own => RunEvent::Nested {
                namespace: namespace.to_owned(),
                modes: own.modes(),
                event: serde_json::to_value(&own).unwrap_or(Value::Null),
            },
        }
    }
}

/// Appends a piece of an answer to the previous one, both as the JSON of their events, if only their texts differ.
pub(crate) fn join_pieces(before: &mut Value, next: &Value) -> bool {
    let (Some(old), Some(new)) = (before["payload"].as_object_mut(), next["payload"].as_object())
    else {
        return false;
    };
    let is_alike = old.len() == new.len()
        && new.iter().all(|(key, value)| key == "text" || old.get(key) == Some(value));
    if is_alike
        && let Some(Value::String(text)) = old.get_mut("text")
        && let Some(Value::String(more)) = new.get("text")
    {
        text.push_str(more);
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_end_of_a_run_has_the_words_that_other_versions_read() {
        let words = [
            (EndStatus::Done, "done"),
            (EndStatus::Interrupted, "interrupted"),
            (EndStatus::Queued, "queued"),
            (EndStatus::Cancelled, "cancelled"),
            (EndStatus::Failed, "failed"),
        ];
        for (status, word) in words {
            assert_eq!(json!(status), json!(word));
            assert_eq!(EndStatus::deserialize(json!(word)).unwrap(), status);
        }
        assert_eq!(EndStatus::deserialize(json!("of a later version")).unwrap(), EndStatus::Other);
    }
}
