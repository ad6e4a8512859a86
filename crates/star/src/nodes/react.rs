//! An agent as a node: a model that calls a server's tools until it can answer.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::calls;
use perihelion_engine::graph::{Context, Node, NodeError, NodeOutput, State, TaskContext};
use perihelion_llm::{ChatMessage, ChatModel, MessageRole, ToolCall, ToolSpec};
use perihelion_mcp::{self as mcp, ServerInfo, ToolHost};

/// Calls of tools that one run of the node makes at most.
const MAX_CALLS: usize = 25;

/// What an agent came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    pub text: String,
    /// The calls that it made, in their order.
    pub calls: Vec<ToolCall>,
}

/// An agent with the tools of one server.
pub struct React {
    model: Arc<dyn ChatModel>,
    tools: Arc<dyn ToolHost>,
    server: ServerInfo,
    max_calls: usize,
}

impl React {
    /// Makes an agent of a model and of a server as a scan shows it.
    pub fn new(model: Arc<dyn ChatModel>, tools: Arc<dyn ToolHost>, server: ServerInfo) -> Self {
        Self { model, tools, server, max_calls: MAX_CALLS }
    }

    /// Bounds the calls of tools; 25 otherwise.
    #[must_use]
    pub fn with_max_calls(mut self, most: usize) -> Self {
        self.max_calls = most;
        self
    }

    /// Makes it a node that begins with what `prompt` makes of the state, and writes what `write` makes of the answer.
    pub fn node<S: State>(
        self,
        prompt: impl Fn(&S) -> Vec<ChatMessage> + Send + Sync + 'static,
        write: impl Fn(Answered) -> S::Update + Send + Sync + 'static,
    ) -> Arc<dyn Node<S>> {
        Arc::new(Agent { react: self, prompt, write })
    }

    async fn work(
        &self,
        ctx: &TaskContext,
        mut messages: Vec<ChatMessage>,
    ) -> Result<Answered, NodeError> {
        let mut made = Vec::new();
        loop {
            // Without tools it has to answer with what it has.
            let shown = if made.len() < self.max_calls { self.specs() } else { Vec::new() };
            let is_last = shown.is_empty();
            let answer = calls::ask(ctx, &self.model, messages.clone(), shown).await?;
            if answer.tool_calls.is_empty() {
                return Ok(Answered { text: answer.content, calls: made });
            }
            if is_last {
                let most = self.max_calls;
                let message = format!("the model did not answer within {most} tool calls");
                return Err(NodeError::failed("agent", message));
            }
            messages.push(ChatMessage {
                role: MessageRole::Assistant,
                content: answer.content,
                tool_calls: answer.tool_calls.clone(),
                tool_call_id: None,
                attached: Vec::new(),
            });
            for call in answer.tool_calls {
                let reported = self.call(ctx, &call).await?;
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

    /// Performs a call of the model's; what is wrong with it is told to the model.
    async fn call(&self, ctx: &TaskContext, call: &ToolCall) -> Result<String, NodeError> {
        let Some(tool) = self.server.tools.iter().find(|tool| tool.name == call.name) else {
            return Ok(format!("there is no tool named {}", call.name));
        };
        let Value::Object(arguments) = &call.arguments else {
            return Ok(format!("the arguments of {} are not a JSON object", tool.name));
        };
        if let Err(problem) = mcp::validate_arguments(tool, arguments) {
            return Ok(problem.to_string());
        }
        let server = &self.server.name;
        if tool.needs_approval {
            let question = serde_json::json!({
                "server": server, "tool": tool.name, "arguments": arguments, "call": call.id,
            });
            let verdict: super::Verdict = ctx.ask("approval", &question).await?;
            if !verdict.approved {
                let why = verdict.reason.unwrap_or_default();
                return Ok(format!("a person denied this call: {why}"));
            }
        }
        match calls::call(ctx, &self.tools, server, &tool.name, arguments.clone()).await {
            Ok(outcome) => Ok(outcome.text),
            Err(NodeError::Failed { message, .. }) => Ok(message),
            Err(stops) => Err(stops),
        }
    }
}

struct Agent<P, W> {
    react: React,
    prompt: P,
    write: W,
}

#[async_trait]
impl<S, P, W> Node<S> for Agent<P, W>
where
    S: State,
    P: Fn(&S) -> Vec<ChatMessage> + Send + Sync,
    W: Fn(Answered) -> S::Update + Send + Sync,
{
    async fn run(&self, ctx: Context<S>) -> Result<NodeOutput<S>, NodeError> {
        let messages = (self.prompt)(ctx.state());
        let answered = self.react.work(ctx.task(), messages).await?;
        Ok(NodeOutput::update((self.write)(answered)))
    }
}
