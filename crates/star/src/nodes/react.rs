//! An agent as a node: a model that calls a server's tools until it can answer.

use std::sync::Arc;

use serde_json::Value;

use super::calls::{self, Permitted};
use crate::Result;
use perihelion_engine::graph::{
    Context, Node, NodeError, NodeOutput, State, TaskContext, node_with,
};
use perihelion_llm::{ChatMessage, ChatModel, ToolCall, ToolSpec};
use perihelion_mcp::{self as mcp, ServerInfo, ToolHost};

/// Calls of tools that one run of the node makes at most.
const MAX_CALLS: usize = 25;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The ID under which the text was streamed, for the message that it becomes.
    pub message_id: String,
    pub text: String,
    /// The calls that it made, in their order.
    pub calls: Vec<ToolCall>,
}

pub struct React {
    model: Arc<dyn ChatModel>,
    tools: Arc<dyn ToolHost>,
    server: ServerInfo,
}

impl React {
    pub fn new(model: Arc<dyn ChatModel>, tools: Arc<dyn ToolHost>, server: ServerInfo) -> Self {
        Self { model, tools, server }
    }

    /// Makes it a node that begins with what `prompt` makes of the state, and writes what `write` makes of the answer.
    pub fn node<S: State>(
        self,
        prompt: impl Fn(&S) -> Vec<ChatMessage> + Send + Sync + 'static,
        write: impl Fn(Answered) -> S::Update + Send + Sync + 'static,
    ) -> Arc<dyn Node<S>> {
        node_with(Arc::new((self, prompt, write)), async |parts, ctx: Context<S>| {
            let (react, prompt, write) = &*parts;
            let answered = react.work(ctx.task(), prompt(ctx.state())).await?;
            Ok(NodeOutput::update(write(answered)))
        })
    }

    async fn work(&self, ctx: &TaskContext, mut messages: Vec<ChatMessage>) -> Result<Answered> {
        let mut made = Vec::new();
        loop {
            // Without tools it has to answer with what it has.
            let shown = if made.len() < MAX_CALLS { self.specs() } else { Vec::new() };
            let is_last = shown.is_empty();
            let answer = calls::ask(ctx, &self.model, messages.clone(), shown).await?;
            if answer.tool_calls.is_empty() {
                let place = ctx.place();
                let message_id = crate::message_id(0, place.step, &place.node);
                return Ok(Answered { message_id, text: answer.content, calls: made });
            }
            if is_last {
                let message = format!("the model did not answer within {MAX_CALLS} tool calls");
                return Err(NodeError::failed("agent", message));
            }
            let tool_calls = answer.tool_calls.clone();
            messages.push(ChatMessage { tool_calls, ..ChatMessage::assistant(answer.content) });
            for mut call in answer.tool_calls {
                if made.len() == MAX_CALLS {
                    let why =
                        format!("not called: the limit of {MAX_CALLS} tool calls was reached");
                    messages.push(ChatMessage::tool(&call.id, why));
                    continue;
                }
                let reported = self.call(ctx, &mut call).await?;
                messages.push(ChatMessage::tool(&call.id, reported));
                made.push(call);
            }
        }
    }

    fn specs(&self) -> Vec<ToolSpec> {
        let spec = |tool: &mcp::ToolDefinition| ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: (*tool.input_schema).clone(),
        };
        self.server.tools.iter().map(spec).collect()
    }

    /// Performs a model's tool call; the model gets the errors as text.
    ///
    /// Arguments with which a person replaced those of the call are put into it.
    async fn call(&self, ctx: &TaskContext, call: &mut ToolCall) -> Result<String> {
        let Some(tool) = self.server.tools.iter().find(|tool| tool.name == call.name) else {
            return Ok(format!("there is no tool named {}", call.name));
        };
        let Value::Object(arguments) = &call.arguments else {
            return Ok(format!("the arguments of {} are not a JSON object", tool.name));
        };
        if let Err(problem) = tool.input_schema.check(&tool.name, arguments) {
            return Ok(problem.to_string());
        }
        let server = &self.server.name;
        let question = serde_json::json!({
            "server": server, "tool": tool.name, "arguments": arguments, "call": call.id,
        });
        // An operator may have made it stricter since the program was built.
        let known = tool.call_policy();
        let now = self.tools.call_policy(server, &tool.name);
        let under = now.map_or(known, |now| known.stricter(now));
        let asked = calls::permission(ctx, &call.id, Some(under), &question).await?;
        let Permitted { edited, under } = match asked {
            Ok(permitted) => permitted,
            Err(denied) => return Ok(denied),
        };
        let mut note = String::new();
        let mut arguments = arguments.clone();
        if let Some(edited) = edited {
            if let Err(problem) = tool.input_schema.check(&tool.name, &edited) {
                return Ok(problem.to_string());
            }
            arguments = edited;
            call.arguments = Value::Object(arguments.clone());
            note = format!("(a person changed the arguments to {})\n", call.arguments);
        }
        let called = (server.as_str(), tool.name.as_str());
        match calls::call(ctx, &self.tools, called, arguments, under).await {
            Ok(outcome) => Ok(note + &outcome.text),
            Err(NodeError::Failed { message, .. }) => Ok(note + &message),
            Err(stops) => Err(stops),
        }
    }
}
