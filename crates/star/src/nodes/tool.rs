//! A node that calls a tool.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::calls;
use perihelion_engine::graph::{Context, Node, NodeError, NodeOutput, State};
use perihelion_mcp::{ToolHost, ToolOutcome};

struct ToolCall<A, W> {
    tools: Arc<dyn ToolHost>,
    server: String,
    tool: String,
    arguments: A,
    write: W,
}

/// Makes a node that calls one tool of a server with what `arguments` makes of the state, and writes what `write` makes
/// of the outcome; a tool's own error is an outcome.
pub fn tool_call<S: State>(
    tools: Arc<dyn ToolHost>,
    (server, tool): (&str, &str),
    arguments: impl Fn(&S) -> Map<String, Value> + Send + Sync + 'static,
    write: impl Fn(ToolOutcome) -> S::Update + Send + Sync + 'static,
) -> Arc<dyn Node<S>> {
    let server = server.to_owned();
    let tool = tool.to_owned();
    Arc::new(ToolCall { tools, server, tool, arguments, write })
}

#[async_trait]
impl<S, A, W> Node<S> for ToolCall<A, W>
where
    S: State,
    A: Fn(&S) -> Map<String, Value> + Send + Sync,
    W: Fn(ToolOutcome) -> S::Update + Send + Sync,
{
    async fn run(&self, ctx: Context<S>) -> Result<NodeOutput<S>, NodeError> {
        let arguments = (self.arguments)(ctx.state());
        let outcome = calls::call(ctx.task(), &self.tools, &self.server, &self.tool, arguments);
        Ok(NodeOutput::update((self.write)(outcome.await?)))
    }
}
