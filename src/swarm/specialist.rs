//! A specialist: one agent bound to one MCP server, from task to judged result (S1.06, S1.07, S1.09).

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use super::built_in::is_built_in;
use super::model::{RecordedModel, stop_or_failure};
use super::reflection::{Judged, Subject, judge};
use super::star::StarParts;
use super::state::{AgentResult, GraphState, GraphUpdate, Message, ResultStatus, Spent, ToolUse};
use super::toolbox::Toolbox;
use super::{Assignment, breaker, seen, taint, window};
use crate::graph::{Context, Node, NodeError, NodeOutput};
use crate::llm::{ChatMessage, ChatModel, ChatRequest, ChatResponse, MessageRole, Role};
use crate::mcp::ServerInfo;
use crate::metrics::{self, Timer};

/// Works on tasks with the tools of its server, and with nothing else.
pub(super) struct Specialist {
    pub parts: Arc<StarParts>,
    pub name: String,
    pub server: Arc<ServerInfo>,
}

/// How far the work on a task has come.
struct Work {
    /// The newest output, also when the work failed after it.
    output: String,
    error: Option<String>,
    /// The task was handed back as one for another agent.
    not_mine: bool,
    reflection: &'static str,
    attempts: u32,
}

impl Default for Work {
    fn default() -> Self {
        let (output, reflection) = (String::new(), "UNVERIFIED");
        Self { output, error: None, not_mine: false, reflection, attempts: 0 }
    }
}

/// Why the work on a task stopped early.
enum Halt {
    /// The node must stop; nothing is written.
    Node(NodeError),
    /// The agent failed; the run goes on.
    Agent(String),
    /// The agent says that the task is for another one; the run goes on.
    NotMine(String),
}

impl From<NodeError> for Halt {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

#[async_trait]
impl Node<GraphState> for Specialist {
    async fn run(&self, ctx: Context<GraphState>) -> Result<NodeOutput<GraphState>, NodeError> {
        let server = Arc::new(ctx.observe(seen::SERVER, &*self.server).await?);
        let (parts, name) = (Arc::clone(&self.parts), self.name.clone());
        Self { parts, name, server }.perform(ctx).await
    }
}

impl Specialist {
    async fn perform(&self, ctx: Context<GraphState>) -> Result<NodeOutput<GraphState>, NodeError> {
        let assignment: Assignment = ctx.input()?;
        let (task, timer) = (assignment.id.clone(), Timer::start());
        let model = RecordedModel::new(&ctx, &self.parts);
        let about = &assignment.task;
        let mut tools = Toolbox::new(&ctx, &self.parts, &self.server, &self.name, &task, about);
        tools.tainted_by.extend(taint::of_opening(ctx.state(), &assignment));
        let mut work = Work::default();
        match self.work(&ctx, &model, &assignment, &mut tools, &mut work).await {
            Ok(()) => {}
            Err(Halt::Node(error)) => return Err(error),
            Err(Halt::Agent(error)) => work.error = Some(error),
            Err(Halt::NotMine(reason)) => {
                work.error = Some(format!("not mine: {reason}"));
                work.not_mine = true;
            }
        }
        let spent = model.spent();
        if !ctx.port().is_replay() {
            let class = if work.not_mine { "not_mine" } else { "agent_error" };
            let error = work.error.as_ref().map(|_| class);
            metrics::agent_worked(timer, &self.name, error);
        }
        ctx.emit(json!({
            "type": "agent_result", "agent": self.name, "reflection": work.reflection,
            "error": work.error, "not_mine": work.not_mine, "usage": spent.usage,
        }));
        Ok(NodeOutput::update(self.report(&ctx, assignment, work, tools, spent)))
    }

    /// Acts and is judged, round by round, until the output stands or the bound is reached.
    async fn work(
        &self,
        ctx: &Context<GraphState>,
        model: &RecordedModel<'_>,
        assignment: &Assignment,
        tools: &mut Toolbox<'_>,
        work: &mut Work,
    ) -> Result<(), Halt> {
        let mut messages = self.opening(ctx, assignment, tools)?;
        let rounds = self.parts.limits.max_reflections + 1;
        loop {
            work.attempts += 1;
            work.output = self.act(ctx, model, &mut messages, tools).await?;
            let subject = Subject {
                thread: ctx.place().thread.to_string(),
                agent: &self.name,
                task: &assignment.task,
                calls: &tools.calls,
                output: &work.output,
            };
            model.was_live();
            let judged = judge(model, &self.parts.prompts, subject).await?;
            work.reflection = judged.word();
            if model.was_live() {
                metrics::reflected(&self.name, work.reflection);
            }
            ctx.emit(json!({
                "type": "reflection", "agent": self.name, "status": work.reflection,
                "attempt": work.attempts, "of": rounds, "feedback": judged.feedback(),
            }));
            match judged {
                Judged::Approved | Judged::Unverified(_) => return Ok(()),
                Judged::Fixed(refined) => {
                    work.output = refined;
                    return Ok(());
                }
                Judged::Rejected(feedback) if work.attempts >= rounds => {
                    return Err(Halt::Agent(format!(
                        "the output was rejected {} times, last because: {feedback}",
                        work.attempts
                    )));
                }
                Judged::Rejected(feedback) => {
                    messages.push(ChatMessage::assistant(work.output.clone()));
                    let prompt =
                        self.parts.prompts.render("feedback", json!({ "feedback": feedback }));
                    messages.push(ChatMessage::user(prompt.map_err(window::prompt_failed)?));
                }
            }
        }
    }

    /// Lets the model call tools until it answers, within the bound on calls.
    async fn act(
        &self,
        ctx: &Context<GraphState>,
        model: &RecordedModel<'_>,
        messages: &mut Vec<ChatMessage>,
        tools: &mut Toolbox<'_>,
    ) -> Result<String, Halt> {
        let limits = &self.parts.limits;
        let limit = limits.max_tool_calls as usize;
        loop {
            if let Some(spent) = breaker::overspent(ctx.state(), limits, model.spent()) {
                return Err(Halt::Agent(spent.reason));
            }
            let is_last = tools.calls.len() >= limit;
            let response = self.ask(ctx, model, messages, tools, is_last).await?;
            if let Some(reason) = tools.handed_back(&response.tool_calls) {
                return Err(Halt::NotMine(reason));
            }
            if response.tool_calls.is_empty() {
                return match response.content.trim() {
                    "" => Err(Halt::Agent(
                        "the model answered neither with text nor with a tool call".into(),
                    )),
                    text => Ok(text.to_owned()),
                };
            }
            if is_last {
                return Err(Halt::Agent(format!(
                    "the limit of {limit} tool calls for one task was reached"
                )));
            }
            messages.push(ChatMessage {
                role: MessageRole::Assistant,
                content: response.content,
                tool_calls: response.tool_calls.clone(),
                tool_call_id: None,
            });
            let left = limit.saturating_sub(tools.calls.len());
            tools.ask_people(&response.tool_calls[..left.min(response.tool_calls.len())]).await?;
            for (index, call) in response.tool_calls.iter().enumerate() {
                let told = if tools.calls.len() < limit {
                    tools.call(index, call).await?
                } else {
                    format!(
                        "not called: the limit of {limit} tool calls was reached; answer with what you have"
                    )
                };
                messages.push(ChatMessage::tool(&call.id, told));
            }
        }
    }

    async fn ask(
        &self,
        ctx: &Context<GraphState>,
        model: &RecordedModel<'_>,
        messages: &[ChatMessage],
        tools: &Toolbox<'_>,
        without_tools: bool,
    ) -> Result<ChatResponse, Halt> {
        let request = ChatRequest {
            role: Role::Agent,
            thread: ctx.place().thread.to_string(),
            agent: Some(self.name.clone()),
            messages: messages.to_vec(),
            tools: if without_tools { Vec::new() } else { tools.specs() },
            format: None,
        };
        match model.chat(&request, None).await {
            Ok(response) => Ok(response),
            Err(error) => Err(Halt::Agent(stop_or_failure(error)?.to_string())),
        }
    }

    /// Builds the window: the task, upstream outputs, artifact keys, the last few messages.
    fn opening(
        &self,
        ctx: &Context<GraphState>,
        assignment: &Assignment,
        tools: &Toolbox<'_>,
    ) -> Result<Vec<ChatMessage>, NodeError> {
        let state = ctx.state();
        let names: Vec<String> = tools.specs().into_iter().map(|tool| tool.name).collect();
        let prompt = json!({
            "agent": self.name,
            "server": self.server.name,
            "description": self.server.description,
            "tools": names,
            "has_more_tools": tools.is_searched(),
            "task": assignment.task,
            "context": window::context(state),
            "artifacts": window::artifacts(state),
            "recent_messages": window::recent(state),
            "dependency_outputs": assignment.dependency_outputs,
            "skills": [],
        });
        self.parts.prompts.messages("agent", prompt).map_err(window::prompt_failed)
    }

    fn report(
        &self,
        ctx: &Context<GraphState>,
        assignment: Assignment,
        work: Work,
        tools: Toolbox<'_>,
        spent: Spent,
    ) -> GraphUpdate {
        let turn = ctx.state().turn;
        // Results of one step are appended in frontier order, so the number follows from the task's index.
        let number = ctx.state().results_of_turn().count() + ctx.place().task as usize + 1;
        let citations =
            if work.error.is_none() { tools.citations(number, turn) } else { Vec::new() };
        let uses = tools.calls.iter().map(|call| ToolUse {
            tool: match call.tool.as_str() {
                tool if is_built_in(tool) => tool.to_owned(),
                tool => format!("{}.{tool}", self.server.name),
            },
            arguments: call.arguments.clone(),
            is_error: call.is_error,
        });
        let result = AgentResult {
            id: assignment.id.clone(),
            agent: self.name.clone(),
            task: assignment.task,
            status: if work.error.is_none() { ResultStatus::Success } else { ResultStatus::Failed },
            output: work.output.clone(),
            error: work.error.clone(),
            not_mine: work.not_mine,
            reflection: work.reflection.to_owned(),
            attempts: work.attempts,
            tools: uses.collect(),
            usage: spent.usage,
            turn,
            tainted_by: tools.tainted_by.clone(),
        };
        let said = match work.error {
            None => work.output,
            Some(error) => format!("failed: {error}"),
        };
        let message = Message {
            id: assignment.id,
            role: "assistant".into(),
            name: Some(self.name.clone()),
            content: said,
            tainted_by: tools.tainted_by,
        };
        GraphUpdate::new()
            .results(vec![result])
            .messages(vec![message])
            .citations(citations)
            .global_state(tools.artifacts.made)
            .spent(spent)
    }
}
