//! Nodes that ask a model, call a tool or wait for a person, each call an effect of its node.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::answer::{ApprovalAnswer, Word};
use crate::question::kind::APPROVAL;
use crate::{MessagePiece, Result, seen};
use perihelion_engine::graph::{
    Context, EffectError, EffectFailure, Node, NodeOutput, State, TaskContext, node_with,
};
use perihelion_llm::{
    self as llm, ChatMessage, ChatModel, ChatRequest, ChatResponse, Role, ToolSpec,
};
use perihelion_mcp::{self as mcp, CallContext, CallPolicy, ToolHost, ToolOutcome};

/// Asks a model once, or reads its recorded answer back.
pub(super) async fn ask(
    ctx: &TaskContext,
    model: &Arc<dyn ChatModel>,
    messages: Vec<ChatMessage>,
    tools: Vec<ToolSpec>,
) -> Result<ChatResponse> {
    let request = ChatRequest::new(Role::Agent, ctx.place().thread.to_string(), messages);
    let request = ChatRequest { tools, ..request.agent(ctx.place().node.to_string()) };
    let perform = |_key: String| {
        let model = Arc::clone(model);
        let request = request.clone();
        let port = Arc::clone(ctx.port());
        async move {
            let mut publish = |piece: &str| MessagePiece::publish(&port, piece);
            let answer = model.chat(&request, Some(&mut publish)).await.and_then(|answer| {
                match answer.cut() {
                    Some(reason) => Err(llm::Error::Truncated { reason }),
                    None => Ok(answer),
                }
            });
            answer.map_err(EffectError::no_effect)
        }
    };
    ctx.read_only(Role::Agent.as_str(), &request, perform).await
}

/// Calls a tool once, or returns its recorded outcome; it is sent again without a question only if the operator
/// declared it repeatable.
pub(super) async fn call(
    ctx: &TaskContext,
    tools: &Arc<dyn ToolHost>,
    (server, tool): (&str, &str),
    arguments: Map<String, Value>,
    under: Option<CallPolicy>,
) -> Result<ToolOutcome> {
    let name = format!("{server}.{tool}");
    let request = json!({ "server": server, "tool": tool, "arguments": arguments });
    let is_repeatable = tools.call_policy(server, tool).is_some_and(|now| now.repeatable);
    let perform = |key: String| {
        let tools = Arc::clone(tools);
        let arguments = arguments.clone();
        let server = server.to_owned();
        let tool = tool.to_owned();
        let context = CallContext { idempotency_key: key, under, ..CallContext::default() };
        async move {
            let called = tools.call(&server, &tool, arguments, context).await;
            called.map_err(|error| match error {
                mcp::Error::Unknown { .. } => EffectFailure::Unknown(error.to_string()).into(),
                other => EffectError::no_effect(other),
            })
        }
    };
    if is_repeatable {
        ctx.idempotent(&name, &request, perform).await
    } else {
        ctx.once(&name, &request, perform).await
    }
}

pub(super) struct Permitted {
    pub edited: Option<Map<String, Value>>,
    pub under: Option<CallPolicy>,
}

/// Asks a person about a call if its rules want that, or did when the node ran before; `Err` is a denial in words.
///
/// `id` names the call in its node.
pub(super) async fn permission(
    ctx: &TaskContext,
    id: &str,
    under: Option<CallPolicy>,
    question: &Value,
) -> Result<Result<Permitted, String>> {
    let note = format!("{} {id}", seen::ASKED);
    let is_gated = under.is_some_and(|rules| rules.needs_approval);
    if !is_gated && !ctx.noted(&note)?.unwrap_or(false) {
        return Ok(Ok(Permitted { edited: None, under }));
    }
    ctx.observe(&note, &true).await?;
    let verdict: Verdict = ctx.ask(APPROVAL, question).await?;
    if !verdict.approved {
        let why = verdict.reason.unwrap_or_default();
        return Ok(Err(format!("a person denied this call: {why}")));
    }
    let under = under.map(CallPolicy::allowed);
    Ok(Ok(Permitted { edited: verdict.arguments, under }))
}

/// The decision of a person: `{ "approved": true, "reason": "…" }`, or the recorded form of an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Recorded")]
pub struct Verdict {
    pub approved: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Map<String, Value>>,
}

/// Both forms of an answer; an unreadable answer denies.
#[derive(Deserialize)]
struct Recorded {
    #[serde(default)]
    approved: bool,
    #[serde(flatten)]
    answer: ApprovalAnswer,
}

impl From<Recorded> for Verdict {
    fn from(Recorded { approved, answer }: Recorded) -> Self {
        let approved = approved || answer.decision == Word::Approve;
        Self { approved, reason: answer.reason, arguments: answer.arguments }
    }
}

/// Makes a node that asks a person the `question` about the state. It continues with the output that `write` makes of
/// the verdict: an update, and optionally the next node.
pub fn approval<S: State>(
    question: impl Fn(&S) -> Value + Send + Sync + 'static,
    write: impl Fn(Verdict) -> NodeOutput<S> + Send + Sync + 'static,
) -> Arc<dyn Node<S>> {
    node_with(Arc::new((question, write)), async |parts, ctx: Context<S>| {
        let (question, write) = &*parts;
        let question = question(ctx.state());
        Ok(write(ctx.ask(APPROVAL, &question).await?))
    })
}

/// Makes a node that asks a model what `prompt` makes of the state, and writes what `write` makes of the answer.
pub fn model_call<S: State>(
    model: Arc<dyn ChatModel>,
    prompt: impl Fn(&S) -> Vec<ChatMessage> + Send + Sync + 'static,
    write: impl Fn(ChatResponse) -> S::Update + Send + Sync + 'static,
) -> Arc<dyn Node<S>> {
    node_with(Arc::new((model, prompt, write)), async |parts, ctx: Context<S>| {
        let (model, prompt, write) = &*parts;
        let answer = ask(ctx.task(), model, prompt(ctx.state()), Vec::new()).await?;
        Ok(NodeOutput::update(write(answer)))
    })
}

/// Makes a node that calls one tool of a server with the `arguments` from the state, and writes the update that `write`
/// makes of the outcome. An error of the tool is an outcome, and so is the denial of a call that needs an approval.
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
        let under = tools.call_policy(server, tool);
        let question = json!({ "server": server, "tool": tool, "arguments": arguments });
        let outcome = match permission(ctx.task(), tool, under, &question).await? {
            Ok(Permitted { edited, under }) => {
                let arguments = edited.unwrap_or(arguments);
                call(ctx.task(), tools, (server, tool), arguments, under).await?
            }
            Err(denied) => ToolOutcome::failed(denied),
        };
        Ok(NodeOutput::update(write(outcome)))
    })
}
