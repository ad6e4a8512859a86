//! A node that calls a tool.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::calls;
use perihelion_engine::graph::{Context, Node, NodeOutput, State, node_with};
use perihelion_mcp::{ToolHost, ToolOutcome};

/// Makes a node that calls one tool of a server with what `arguments` makes of the state, and writes what `write` makes
/// of the outcome; a tool's own error is an outcome.
pub fn tool_call<S: State>(
    tools: Arc<dyn ToolHost>,
    (server, tool): (&str, &str),
    arguments: impl Fn(&S) -> Map<String, Value> + Send + Sync + 'static,
    write: impl Fn(ToolOutcome) -> S::Update + Send + Sync + 'static,
) -> Arc<dyn Node<S>> {
    let called = (tools, server.to_owned(), tool.to_owned());
    node_with(Arc::new((called, arguments, write)), async |parts, ctx: Context<S>| {
        let ((tools, server, tool), arguments, write) = &*parts;
        let arguments = arguments(ctx.state());
        let outcome = calls::call(ctx.task(), tools, server, tool, arguments).await?;
        Ok(NodeOutput::update(write(outcome)))
    })
}
