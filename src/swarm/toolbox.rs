//! An agent's tools: checked, gated, called once, and their results kept in bounds.

use serde_json::{Map, Value, json};

use super::artifacts::{Artifacts, READ_ARTIFACT};
use super::exchange::Exchange;
use super::star::StarParts;
use super::state::{Citation, GraphState};
use super::tool_names::ToolNames;
use super::window::{clip, prompt_failed};
use crate::graph::{Context, NodeError};
use crate::llm::{ToolCall, ToolSpec};
use crate::mcp::{self, ServerInfo, ToolDefinition};

/// Kind of the interrupt that asks a person to allow a call.
const APPROVAL: &str = "approval";

/// Times that the same call with the same arguments is made for one task.
const SAME_CALLS: usize = 3;

/// One call as shown to the reflector and kept with the result.
#[derive(Clone, Debug)]
pub(super) struct CallRecord {
    /// The tool's own name.
    pub tool: String,
    pub arguments: Value,
    pub output: String,
    pub is_error: bool,
    /// `server.tool` whose data it gave.
    pub source: String,
}

/// What a call gave; the error is told to the model as well.
pub(super) struct Told {
    pub text: String,
    pub source: Option<String>,
    pub is_error: bool,
}

impl Told {
    pub(super) fn problem(text: String) -> Self {
        Self { text, source: None, is_error: true }
    }
}

/// The tools of one agent while it works on one task.
pub(super) struct Toolbox<'a> {
    ctx: &'a Context<GraphState>,
    parts: &'a StarParts,
    server: &'a ServerInfo,
    agent: &'a str,
    task: &'a str,
    names: ToolNames,
    pub calls: Vec<CallRecord>,
    pub artifacts: Artifacts<'a>,
}

impl<'a> Toolbox<'a> {
    pub(super) fn new(
        ctx: &'a Context<GraphState>,
        parts: &'a StarParts,
        server: &'a ServerInfo,
        agent: &'a str,
        task: &'a str,
    ) -> Self {
        let names = ToolNames::new(&server.tools);
        let artifacts = Artifacts::new(ctx.state(), parts.limits.result_bytes);
        Self { ctx, parts, server, agent, task, names, calls: Vec::new(), artifacts }
    }

    /// Returns the tools as the model is shown them.
    pub(super) fn specs(&self) -> Vec<ToolSpec> {
        let spec = |(tool, name): (&ToolDefinition, &str)| ToolSpec {
            name: name.to_owned(),
            description: tool.description.clone(),
            parameters: tool.input_schema.clone(),
        };
        let own = self.server.tools.iter().zip(self.names.iter()).map(spec);
        own.chain(self.artifacts.spec()).collect()
    }

    /// Performs a call that the model asked for and returns what the model is told; a failure is told as data.
    ///
    /// # Errors
    /// [`NodeError`] when a person must decide first, or the run stops.
    pub(super) async fn call(&mut self, call: &ToolCall) -> Result<String, NodeError> {
        let (server, tools) = (self.server, &self.server.tools);
        let tool = self.names.find(&call.name, tools);
        let name = tool.map_or_else(|| call.name.clone(), |tool| tool.name.clone());
        let full_name = match tool {
            None if call.name == READ_ARTIFACT => READ_ARTIFACT.to_owned(),
            _ => format!("{}.{name}", server.name),
        };
        let told = match tool {
            _ if self.is_worn_out(&name, &call.arguments) => Told::problem(format!(
                "not called: the same call was made {SAME_CALLS} times for this task and will not be \
                 repeated; go on with what it gave"
            )),
            Some(tool) => self.perform(tool, &full_name, &call.arguments).await?,
            None if call.name == READ_ARTIFACT => match self.artifacts.read(&call.arguments) {
                Ok(piece) => Told { text: piece.text, source: Some(piece.source), is_error: false },
                Err(problem) => Told::problem(problem),
            },
            None => Told::problem(format!(
                "there is no tool named {}; the tools are: {}",
                call.name,
                self.names.iter().collect::<Vec<_>>().join(", ")
            )),
        };
        self.ctx.emit(json!({
            "type": "tool_result", "agent": self.agent, "tool": full_name, "is_error": told.is_error,
            "preview": clip(&told.text, 200),
        }));
        let Told { text, source, is_error } = told;
        // A piece of an artifact is in bounds already and must not become one itself.
        let output = match source {
            Some(_) => text,
            None => {
                let key = format!("{}/{}", self.task, self.calls.len() + 1);
                self.artifacts.bounded(key, &full_name, text)
            }
        };
        let shown = json!({ "tool": call.name, "output": output, "is_error": is_error });
        let shown = self.parts.prompts.render("tool_result", shown).map_err(prompt_failed)?;
        let (arguments, source) = (call.arguments.clone(), source.unwrap_or(full_name));
        self.calls.push(CallRecord { tool: name, arguments, output, is_error, source });
        Ok(shown)
    }

    /// Returns whether a call was made as often as makes sense.
    fn is_worn_out(&self, name: &str, arguments: &Value) -> bool {
        let same = |call: &&CallRecord| call.tool == name && call.arguments == *arguments;
        self.calls.iter().filter(same).count() >= SAME_CALLS
    }

    /// Checks, gates and sends one call.
    async fn perform(
        &self,
        tool: &ToolDefinition,
        full_name: &str,
        arguments: &Value,
    ) -> Result<Told, NodeError> {
        let Value::Object(arguments) = arguments else {
            return Ok(Told::problem(format!(
                "the arguments of {} are not a JSON object: {arguments}",
                tool.name
            )));
        };
        if let Err(problem) = mcp::validate_arguments(tool, arguments) {
            return Ok(Told::problem(problem));
        }
        if tool.needs_approval
            && let Some(denied) = self.denied(tool, arguments).await?
        {
            return Ok(Told::problem(denied));
        }
        let exchange = Exchange {
            ctx: self.ctx,
            parts: self.parts,
            server: &self.server.name,
            agent: self.agent,
            tool,
            full_name,
        };
        exchange.perform(arguments).await
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

    /// Returns where the work's facts come from: the calls that succeeded, each once; the agent where there are none.
    pub(super) fn citations(&self, number: usize, turn: u32) -> Vec<Citation> {
        let agent = || self.agent.to_owned();
        let mut citations: Vec<Citation> = Vec::new();
        for call in self.calls.iter().filter(|call| !call.is_error) {
            let same =
                |one: &Citation| one.source == call.source && one.arguments == call.arguments;
            if !citations.iter().any(same) {
                let (source, arguments) = (call.source.clone(), call.arguments.clone());
                citations.push(Citation { number, agent: agent(), source, arguments, turn });
            }
        }
        if citations.is_empty() {
            let (source, arguments) = (agent(), Value::Null);
            citations.push(Citation { number, agent: agent(), source, arguments, turn });
        }
        citations
    }
}
