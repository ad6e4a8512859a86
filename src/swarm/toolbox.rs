//! An agent's tools: checked, gated, called once, and their results kept in bounds.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::star::StarParts;
use super::state::{Artifact, Citation, GraphState};
use super::window::clip;
use crate::graph::{Context, EffectClass, EffectFailure, EffectRequest, NodeError, Outcome};
use crate::llm::{ToolCall, ToolSpec};
use crate::mcp::{self, CallContext, ServerInfo, ToolDefinition, ToolOutcome};

/// Kind of the interrupt that asks a person to allow a call.
const APPROVAL: &str = "approval";

/// Characters of an artifact that models see.
const PREVIEW_CHARS: usize = 1_000;

/// One call as shown to the reflector and kept with the result.
#[derive(Clone, Debug)]
pub(super) struct CallRecord {
    pub tool: String,
    pub arguments: Value,
    pub output: String,
    pub is_error: bool,
}

/// The tools of one agent while it works on one task.
pub(super) struct Toolbox<'a> {
    ctx: &'a Context<GraphState>,
    parts: &'a StarParts,
    server: &'a ServerInfo,
    agent: &'a str,
    task: &'a str,
    pub calls: Vec<CallRecord>,
    pub artifacts: BTreeMap<String, Artifact>,
}

impl<'a> Toolbox<'a> {
    pub(super) fn new(
        ctx: &'a Context<GraphState>,
        parts: &'a StarParts,
        server: &'a ServerInfo,
        agent: &'a str,
        task: &'a str,
    ) -> Self {
        Self { ctx, parts, server, agent, task, calls: Vec::new(), artifacts: BTreeMap::new() }
    }

    /// Returns the tools as the model is shown them.
    pub(super) fn specs(&self) -> Vec<ToolSpec> {
        let spec = |tool: &ToolDefinition| ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.input_schema.clone(),
        };
        self.server.tools.iter().map(spec).collect()
    }

    /// Performs a call that the model asked for and returns what the model is told; a failure is told as data.
    ///
    /// # Errors
    /// [`NodeError`] when a person must decide first, or the run stops.
    pub(super) async fn call(&mut self, call: &ToolCall) -> Result<String, NodeError> {
        let (output, is_error) = match self.perform(call).await? {
            Ok(outcome) => (outcome.text, outcome.is_error),
            Err(problem) => (problem, true),
        };
        let name = format!("{}.{}", self.server.name, call.name);
        self.ctx.emit(json!({
            "type": "tool_result", "agent": self.agent, "tool": name, "is_error": is_error,
            "preview": clip(&output, 200),
        }));
        let output = self.bounded(&name, output);
        let shown = json!({ "tool": call.name, "output": output, "is_error": is_error });
        let told = self
            .parts
            .prompts
            .render("tool_result", shown)
            .map_err(super::window::prompt_failed)?;
        self.calls.push(CallRecord {
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            output,
            is_error,
        });
        Ok(told)
    }

    /// Checks, gates and sends one call; `Err` is a problem to tell the model.
    async fn perform(&self, call: &ToolCall) -> Result<Result<ToolOutcome, String>, NodeError> {
        let Some(tool) = self.server.tools.iter().find(|tool| tool.name == call.name) else {
            let names: Vec<&str> =
                self.server.tools.iter().map(|tool| tool.name.as_str()).collect();
            return Ok(Err(format!(
                "there is no tool named {}; the tools are: {}",
                call.name,
                names.join(", ")
            )));
        };
        let Value::Object(arguments) = &call.arguments else {
            return Ok(Err(format!(
                "the arguments of {} are not a JSON object: {}",
                call.name, call.arguments
            )));
        };
        if let Err(problem) = mcp::validate_arguments(tool, arguments) {
            return Ok(Err(format!(
                "the arguments of {} do not fit its schema: {problem}",
                call.name
            )));
        }
        if tool.needs_approval
            && let Some(denied) = self.denied(tool, arguments).await?
        {
            return Ok(Err(denied));
        }
        self.ctx.emit(json!({
            "type": "tool_call", "agent": self.agent, "tool": format!("{}.{}", self.server.name, tool.name),
            "arguments": call.arguments,
        }));
        self.send(tool, arguments).await
    }

    /// Asks a person to allow the call; returns what the model is told when it was denied.
    async fn denied(
        &self,
        tool: &ToolDefinition,
        arguments: &Map<String, Value>,
    ) -> Result<Option<String>, NodeError> {
        let payload = json!({
            "agent": self.agent,
            "server": self.server.name,
            "tool": tool.name,
            "arguments": arguments,
            "description": clip(&tool.description, 500),
            "choices": ["approve", "deny"],
        });
        let answer = self.ctx.interrupt(APPROVAL, payload).await?;
        if answer.get("decision").and_then(Value::as_str) == Some("approve") {
            return Ok(None);
        }
        let reason = answer.get("reason").and_then(Value::as_str).unwrap_or("no reason given");
        Ok(Some(format!("a person denied this call: {reason}")))
    }

    async fn send(
        &self,
        tool: &ToolDefinition,
        arguments: &Map<String, Value>,
    ) -> Result<Result<ToolOutcome, String>, NodeError> {
        let effect = EffectRequest {
            class: EffectClass::Action { repeatable: tool.repeatable },
            name: format!("{}.{}", self.server.name, tool.name),
            request: json!({ "server": self.server.name, "tool": tool.name, "arguments": arguments }),
        };
        let tools = Arc::clone(&self.parts.tools);
        let perform = Box::new(move |key: String| {
            let tools = Arc::clone(&tools);
            let (server, tool, arguments) =
                (self.server.name.clone(), tool.name.clone(), arguments.clone());
            Box::pin(async move {
                let context = CallContext { idempotency_key: key, traceparent: None };
                match tools.call(&server, &tool, arguments, context).await {
                    Ok(outcome) => serde_json::to_value(outcome)
                        .map_err(|error| EffectFailure::Unknown(error.to_string())),
                    Err(error @ mcp::Error::Unknown { .. }) => {
                        Err(EffectFailure::Unknown(error.to_string()))
                    }
                    Err(error) => Err(EffectFailure::NoEffect(error.to_string())),
                }
            }) as futures::future::BoxFuture<'_, _>
        });
        match self.ctx.effect(effect, perform).await? {
            Outcome::Failed(problem) => Ok(Err(problem)),
            // A person who supplied the result wrote it as they liked.
            Outcome::Value(value) => {
                Ok(Ok(serde_json::from_value(value.clone()).unwrap_or_else(|_| ToolOutcome {
                    is_error: false,
                    text: value.as_str().map_or_else(|| value.to_string(), str::to_owned),
                    structured: None,
                })))
            }
        }
    }

    /// Moves a result that is too long onto the blackboard and returns its preview.
    fn bounded(&mut self, source: &str, output: String) -> String {
        if output.len() <= self.parts.limits.result_bytes {
            return output;
        }
        let key = format!("{}/{}", self.task, self.calls.len() + 1);
        let preview = clip(&output, PREVIEW_CHARS);
        let bytes = output.len();
        let shown = format!(
            "The result has {bytes} bytes and is kept as the artifact {key}. It begins:\n{preview}"
        );
        let artifact = Artifact { source: source.to_owned(), preview, bytes, content: output };
        self.artifacts.insert(key, artifact);
        shown
    }

    /// Returns where the work's facts come from: the calls that succeeded, each once.
    pub(super) fn citations(&self, number: usize, turn: u32) -> Vec<Citation> {
        let mut citations: Vec<Citation> = Vec::new();
        for call in self.calls.iter().filter(|call| !call.is_error) {
            let source = format!("{}.{}", self.server.name, call.tool);
            if !citations
                .iter()
                .any(|known| known.source == source && known.arguments == call.arguments)
            {
                let (agent, arguments) = (self.agent.to_owned(), call.arguments.clone());
                citations.push(Citation { number, agent, source, arguments, turn });
            }
        }
        citations
    }
}
