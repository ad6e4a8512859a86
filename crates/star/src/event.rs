//! Events of the star's nodes during a run: one type for the listener.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{FinishReason, ReflectionVerdict};
use perihelion_engine::graph::{Port, StreamMode, TaskContext};
use perihelion_llm::Usage;

/// One live event of a node, published in the `custom` stream mode; its JSON form carries its name as `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvent {
    Decision {
        thought: String,
        plan: Vec<String>,
        agents: Vec<String>,
        clarification: Option<String>,
        usage: Usage,
    },
    DecisionRefused {
        problems: Vec<String>,
    },
    Search {
        query: String,
        found: Vec<String>,
    },
    /// Agents start on a stage of the plan; `remaining` stages follow.
    Stage {
        agents: Vec<String>,
        remaining: usize,
    },
    PipelineStage {
        agent: String,
        stage: String,
        attempt: u32,
    },
    Progress {
        agent: String,
        message: String,
    },
    ToolCall {
        agent: String,
        tool: String,
        arguments: Map<String, Value>,
        /// Names the call among those of its thread; events of earlier versions have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
    },
    ToolRecorded {
        agent: String,
        tool: String,
        arguments: Map<String, Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
    },
    ToolProgress {
        agent: String,
        tool: String,
        done: f64,
        total: Option<f64>,
        message: String,
    },
    ToolResult {
        agent: String,
        tool: String,
        is_error: bool,
        preview: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
    },
    HitlRequired {
        id: String,
        agent: String,
        tool: String,
        expires_at: String,
    },
    HitlApproved {
        agent: String,
        tool: String,
        instruction: Option<String>,
        edited: bool,
    },
    HitlDenied {
        agent: String,
        tool: String,
        reason: String,
    },
    /// The request expired, which counts as a denial.
    HitlTimeout {
        agent: String,
        tool: String,
    },
    /// A call was not made, because the request does not wait for people.
    HitlSkipped {
        agent: String,
        tool: String,
    },
    Reflection {
        agent: String,
        status: ReflectionVerdict,
        attempt: u32,
        of: u32,
        feedback: Option<String>,
    },
    AgentResult {
        agent: String,
        reflection: String,
        error: Option<String>,
        not_mine: bool,
        usage: Usage,
    },
    /// The turn ends although the work is not done.
    EndedEarly {
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish_reason: Option<FinishReason>,
    },
}

impl AgentEvent {
    /// Publishes the event to the run's listener; never waits.
    pub fn publish(&self, ctx: &TaskContext) {
        ctx.emit(json!(self));
    }

    /// Reads a published event; `None` for what this version does not know.
    pub fn read(payload: &Value) -> Option<Self> {
        Self::deserialize(payload).ok()
    }
}

/// A piece of a streamed answer, published in the `messages` stream mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagePiece {
    pub text: String,
}

impl MessagePiece {
    /// Publishes a piece to the run's listener; never waits.
    pub(super) fn publish(port: &Arc<dyn Port>, text: &str) {
        port.emit(StreamMode::Messages, json!(Self { text: text.to_owned() }));
    }

    /// Reads a published piece; `None` for what this version does not know.
    pub fn read(payload: &Value) -> Option<Self> {
        Self::deserialize(payload).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_events_are_read_unchanged_and_foreign_events_are_ignored() {
        let event = AgentEvent::Progress { agent: "a".into(), message: "half".into() };
        let published = json!(event);
        assert_eq!(published, json!({ "type": "progress", "agent": "a", "message": "half" }));
        assert_eq!(AgentEvent::read(&published), Some(event));
        assert_eq!(AgentEvent::read(&json!({ "type": "of a later version" })), None);
        let judged = json!({
            "type": "reflection", "agent": "a", "status": "REJECTED", "attempt": 1, "of": 3, "feedback": "more",
        });
        assert_eq!(AgentEvent::read(&judged).map(|event| json!(event)), Some(judged));
    }
}
