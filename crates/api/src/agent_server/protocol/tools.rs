//! The channel `tools`: the tool calls that nodes report, each with an ID.

use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use perihelion_star::AgentEvent;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[expect(clippy::enum_variant_names, reason = "these are the names on the wire")]
pub(super) enum ToolEvent {
    ToolStarted { tool_call_id: String, tool_name: String, input: Map<String, Value> },
    ToolFinished { tool_call_id: String, output: String },
    ToolError { tool_call_id: String, message: String },
}

/// The tool calls of one run that have not ended, oldest first.
pub(super) struct ToolCalls {
    run: Uuid,
    open: Vec<Call>,
}

#[derive(Clone, PartialEq)]
struct Call {
    id: String,
    call_id: Option<String>,
    agent: String,
    tool: String,
    arguments: Map<String, Value>,
}

impl ToolCalls {
    pub(super) fn of(run: Uuid) -> Self {
        Self { run, open: Vec::new() }
    }

    /// Forgets the calls of a step that begins again.
    pub(super) fn begin_again(&mut self) {
        self.open.clear();
    }

    /// Reads the tool calls of an event of the log.
    ///
    /// A call that is reported again after a crash stays one call. An event without the ID of its call, as earlier
    /// versions wrote, belongs to the oldest open call of the agent to the tool; a call that was never sent starts and
    /// ends together.
    pub(super) fn read(&mut self, event: u64, payload: &Value) -> Vec<ToolEvent> {
        match AgentEvent::read(payload) {
            Some(
                AgentEvent::ToolCall { agent, tool, arguments, call_id }
                | AgentEvent::ToolRecorded { agent, tool, arguments, call_id },
            ) => self.start(event, Call { id: String::new(), call_id, agent, tool, arguments }),
            Some(AgentEvent::ToolResult { agent, tool, is_error, preview, call_id }) => {
                let is_it = |call: &Call| {
                    call.call_id == call_id && call.agent == agent && call.tool == tool
                };
                let mut events = Vec::new();
                if !self.open.iter().any(is_it) {
                    events = self.start(
                        event,
                        Call {
                            id: String::new(),
                            call_id: call_id.clone(),
                            agent: agent.clone(),
                            tool: tool.clone(),
                            arguments: Map::new(),
                        },
                    );
                }
                if let Some(at) = self.open.iter().position(is_it) {
                    let tool_call_id = self.open.remove(at).id;
                    events.push(if is_error {
                        ToolEvent::ToolError { tool_call_id, message: preview }
                    } else {
                        ToolEvent::ToolFinished { tool_call_id, output: preview }
                    });
                }
                events
            }
            _ => Vec::new(),
        }
    }

    /// Notes a call that begins, unless it is open already.
    fn start(&mut self, event: u64, call: Call) -> Vec<ToolEvent> {
        if self.open.iter().any(|open| Call { id: String::new(), ..open.clone() } == call) {
            return Vec::new();
        }
        let id = Uuid::new_v5(&self.run, format!("tool/{event}").as_bytes()).to_string();
        let started = ToolEvent::ToolStarted {
            tool_call_id: id.clone(),
            tool_name: call.tool.clone(),
            input: call.arguments.clone(),
        };
        self.open.push(Call { id, ..call });
        vec![started]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(tool: &str) -> Value {
        json!({ "type": "tool_call", "agent": "a", "tool": tool, "arguments": { "x": 1 } })
    }

    fn result(tool: &str, is_error: bool) -> Value {
        json!({ "type": "tool_result", "agent": "a", "tool": tool, "is_error": is_error, "preview": "done" })
    }

    #[test]
    fn a_call_starts_once_and_ends_under_its_id() {
        let mut calls = ToolCalls::of(Uuid::nil());
        let started = json!(calls.read(1, &call("t")));
        assert_eq!(started[0]["event"], "tool-started");
        assert_eq!(
            (&started[0]["tool_name"], &started[0]["input"]),
            (&json!("t"), &json!({ "x": 1 }))
        );
        assert!(calls.read(2, &call("t")).is_empty(), "reported again after a crash");
        let ended = json!(calls.read(3, &result("t", false)));
        assert_eq!(ended[0]["event"], "tool-finished");
        assert_eq!(ended[0]["tool_call_id"], started[0]["tool_call_id"]);
        let denied = json!(calls.read(4, &result("t", true)));
        assert_eq!(
            (&denied[0]["event"], &denied[1]["event"]),
            (&json!("tool-started"), &json!("tool-error"))
        );
        // Two calls of one tool end in any order, each under its own ID.
        let of = |mut event: Value, id: &str| {
            event["call_id"] = json!(id);
            event
        };
        let first = json!(calls.read(6, &of(call("t"), "1/1.0")));
        let second = json!(calls.read(7, &of(call("t"), "1/1.1")));
        let ended = json!(calls.read(8, &of(result("t", false), "1/1.1")));
        assert_eq!(ended[0]["tool_call_id"], second[0]["tool_call_id"]);
        let ended = json!(calls.read(9, &of(result("t", false), "1/1.0")));
        assert_eq!(ended[0]["tool_call_id"], first[0]["tool_call_id"]);
        assert!(
            calls
                .read(5, &json!({ "type": "progress", "agent": "a", "message": "half" }))
                .is_empty()
        );
    }
}
