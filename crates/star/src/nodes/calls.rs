//! Model and tool calls as effects of a node.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use perihelion_engine::graph::{EffectError, EffectFailure, NodeError, TaskContext};
use perihelion_llm::{
    self as llm, ChatMessage, ChatModel, ChatRequest, ChatResponse, Role, ToolSpec,
};
use perihelion_mcp::{self as mcp, CallContext, ToolHost, ToolOutcome};

/// Asks a model once, or reads its recorded answer back.
pub(super) async fn ask(
    ctx: &TaskContext,
    model: &Arc<dyn ChatModel>,
    messages: Vec<ChatMessage>,
    tools: Vec<ToolSpec>,
) -> Result<ChatResponse, NodeError> {
    let request = ChatRequest::new(Role::Agent, ctx.place().thread.to_string(), messages);
    let request = ChatRequest { tools, ..request.agent(ctx.place().node.to_string()) };
    let perform = |_key: String| {
        let model = Arc::clone(model);
        let request = request.clone();
        async move {
            let answer = model.chat(&request, None).await.and_then(|answer| match answer.cut() {
                Some(reason) => Err(llm::Error::Truncated { reason }),
                None => Ok(answer),
            });
            answer.map_err(|error| EffectError::no_effect(error.to_string()))
        }
    };
    ctx.read_only(Role::Agent.as_str(), &request, perform).await
}

/// Calls a tool once, or reads its recorded outcome back; sent again by itself only where the operator declared that
/// this does no harm.
pub(super) async fn call(
    ctx: &TaskContext,
    tools: &Arc<dyn ToolHost>,
    server: &str,
    tool: &str,
    arguments: Map<String, Value>,
) -> Result<ToolOutcome, NodeError> {
    let name = format!("{server}.{tool}");
    let request = json!({ "server": server, "tool": tool, "arguments": arguments });
    let call_policy = tools.call_policy(server, tool);
    let perform = |key: String| {
        let tools = Arc::clone(tools);
        let arguments = arguments.clone();
        let server = server.to_owned();
        let tool = tool.to_owned();
        let context =
            CallContext { idempotency_key: key, under: call_policy, ..CallContext::default() };
        async move {
            let called = tools.call(&server, &tool, arguments, context).await;
            called.map_err(|error| match error {
                mcp::Error::Unknown { .. } => EffectFailure::Unknown(error.to_string()).into(),
                other => EffectError::no_effect(other.to_string()),
            })
        }
    };
    if call_policy.is_some_and(|call_policy| call_policy.repeatable) {
        ctx.idempotent(&name, &request, perform).await
    } else {
        ctx.once(&name, &request, perform).await
    }
}
