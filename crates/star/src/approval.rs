//! Asks people to permit calls: all calls of one model answer together, each decided separately, within a time limit;
//! also reads their instructions.
//!
//! An approval is bound to the arguments that were shown and are sent. The question's ID is derived from server, tool,
//! exact arguments and the time of the question, which are equal in every process; each of several equal calls has its
//! own ID. It is used once, by the call it belongs to.

use std::time::Duration;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer::{ApprovalAnswer, Word};
use super::model::{RecordedModel, stop_or_failure};
use super::question::{Approval, kind};
use super::window::{self, clip};
use super::{AgentError, AgentEvent, ErrorKind, Instruction, InstructionKind, Sources, StarParts};
use crate::Result;
use perihelion_engine::graph::{Interrupt, NodeError, TaskContext};
use perihelion_llm::{self as llm, ChatRequest, Role};
use perihelion_mcp::{self as mcp, ToolDefinition};

/// Characters of arguments that are written out for a person.
const ARGUMENTS: usize = 2_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Allowed, perhaps with a word for the agent, perhaps with other arguments.
    Approved {
        instruction: Option<String>,
        arguments: Option<Map<String, Value>>,
    },
    Denied {
        reason: String,
    },
    TimedOut,
    /// The request does not wait for people, so the question was not asked.
    Skipped,
}

impl Decision {
    pub(super) fn edited(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Approved { arguments, .. } => arguments.as_ref(),
            _ => None,
        }
    }

    pub(super) fn instruction(&self) -> Option<&String> {
        match self {
            Self::Approved { instruction, .. } => instruction.as_ref(),
            _ => None,
        }
    }

    fn publish(&self, ctx: &TaskContext, call: &Gated<'_>) {
        let agent = call.agent.to_owned();
        let tool = call.full_name();
        match self {
            Self::Approved { instruction, arguments } => {
                let instruction = instruction.clone();
                let edited = arguments.is_some();
                AgentEvent::HitlApproved { agent, tool, instruction, edited }
            }
            Self::Denied { reason } => {
                AgentEvent::HitlDenied { agent, tool, reason: reason.clone() }
            }
            Self::TimedOut => AgentEvent::HitlTimeout { agent, tool },
            Self::Skipped => AgentEvent::HitlSkipped { agent, tool },
        }
        .publish(ctx);
    }
}

pub(super) struct Gated<'a> {
    pub agent: &'a str,
    pub server: &'a str,
    pub tool: &'a ToolDefinition,
    pub arguments: &'a Map<String, Value>,
    /// The open-world content that may have led to the call; empty if the tool itself needs an approval.
    pub tainted_by: Sources,
    /// An address that no text of people or tools contains.
    pub unknown: Option<String>,
    pub timeout: Duration,
}

impl Gated<'_> {
    fn full_name(&self) -> String {
        format!("{}.{}", self.server, self.tool.name)
    }

    /// Returns when it can no longer be decided that was asked for at a time.
    fn end(&self, asked_at: DateTime<Utc>) -> DateTime<Utc> {
        let timeout = chrono::Duration::from_std(self.timeout).unwrap_or_default();
        asked_at.checked_add_signed(timeout).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    fn call(&self) -> Value {
        json!({ "server": self.server, "tool": self.tool.name, "arguments": self.arguments })
    }

    fn what(&self, asked_at: DateTime<Utc>) -> Value {
        let mut what = self.call();
        what["asked_at"] = json!(asked_at.to_rfc3339());
        what
    }

    fn question(&self, asked_at: DateTime<Utc>, expires_at: DateTime<Utc>) -> Approval {
        Approval {
            agent: self.agent.to_owned(),
            server: self.server.to_owned(),
            tool: self.tool.name.clone(),
            arguments: self.arguments.clone(),
            description: clip(&self.tool.description, 500),
            choices: ["approve", "deny"].map(str::to_owned).into(),
            reasons: self.reasons(),
            tainted_by: self.tainted_by.clone(),
            call_sha256: mcp::digest(&self.call()),
            asked_at: asked_at.to_rfc3339(),
            expires_at: expires_at.to_rfc3339(),
        }
    }

    fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.tool.needs_approval {
            reasons.push(match self.tool.annotations.destructive {
                Some(true) => "the server says of this tool that it destroys".to_owned(),
                _ => "the servers file wants each call of this tool approved".to_owned(),
            });
        }
        if !self.tainted_by.is_empty() {
            let sources: Vec<&str> = self.tainted_by.iter().map(String::as_str).collect();
            reasons.push(format!(
                "content that anyone can write led to this call; its source is {}",
                sources.join(", ")
            ));
        }
        if let Some(address) = &self.unknown {
            reasons.push(format!(
                "the agent invented this address; no question, result or page contains it: {address}"
            ));
        }
        if let Some(written) = mcp::written_out(&Value::Object(self.arguments.clone())) {
            // A page that shows arguments as they are shows nothing of these.
            reasons.push(format!(
                "its arguments contain invisible characters; made visible, they are {}",
                clip(&written, ARGUMENTS)
            ));
        }
        reasons
    }
}

/// Asks for a decision of each call; calls whose answers came too late are asked for again.
///
/// Every round draws the time once and ends only when all of its questions are answered, so that a
/// node that runs again after a crash asks the same questions.
pub(super) async fn decide(ctx: &TaskContext, calls: &[Gated<'_>]) -> Result<Vec<Decision>> {
    let mut decisions: Vec<Option<Decision>> = vec![None; calls.len()];
    while decisions.iter().any(Option::is_none) {
        let asked_at = ctx.now().await?;
        let mut open: Vec<Interrupt> = Vec::new();
        for (call, decision) in calls.iter().zip(&mut decisions) {
            if decision.is_some() {
                continue;
            }
            let expires_at = call.end(asked_at);
            let question = call.question(asked_at, expires_at);
            match ctx.interrupt_about(kind::APPROVAL, call.what(asked_at), question).await {
                Ok(answer) => {
                    let answer = ApprovalAnswer::of(&answer);
                    if answer.is_late(expires_at) {
                        continue;
                    }
                    let decided = Decision::from(answer);
                    decided.publish(ctx, call);
                    *decision = Some(decided);
                }
                Err(NodeError::Interrupted(questions)) => {
                    for question in &questions {
                        AgentEvent::HitlRequired {
                            id: question.id.to_string(),
                            agent: call.agent.to_owned(),
                            tool: call.full_name(),
                            expires_at: expires_at.to_rfc3339(),
                        }
                        .publish(ctx);
                    }
                    open.extend(questions);
                }
                Err(error) => return Err(error),
            }
        }
        if !open.is_empty() {
            return Err(NodeError::Interrupted(open));
        }
    }
    Ok(decisions.into_iter().flatten().collect())
}

/// Denies work that would wait for a person.
pub(super) fn skip(ctx: &TaskContext, calls: &[Gated<'_>]) -> Vec<Decision> {
    for call in calls {
        Decision::Skipped.publish(ctx, call);
    }
    vec![Decision::Skipped; calls.len()]
}

/// Explains why work that needed an approval was not done.
pub(super) fn not_waited(tool: &str) -> AgentError {
    let message = format!(
        "skipped: {tool} needs a person's approval, and this request does not wait for people; ask again with \
         `approvals` set to `wait`, or follow the run as it runs"
    );
    AgentError::new(ErrorKind::ApprovalRequired, message)
}

impl From<ApprovalAnswer> for Decision {
    fn from(answer: ApprovalAnswer) -> Self {
        let reason = answer.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
        let reason = reason.map(str::to_owned);
        if answer.timeout {
            return Self::TimedOut;
        }
        match answer.decision {
            Word::Approve => Self::Approved { instruction: reason, arguments: answer.arguments },
            Word::Deny => {
                Self::Denied { reason: reason.unwrap_or_else(|| "no reason given".into()) }
            }
        }
    }
}

const STAGE: &str = "instruction";

/// What the classifier answers, under the schema name `instruction_kind`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
struct Classified {
    /// `override` only where the instruction says to do something else in place of the task.
    kind: InstructionKind,
}

/// Classifies an instruction relative to a task; without a model's answer, it extends the task.
pub(super) async fn classify(
    model: &RecordedModel<'_>,
    (ctx, star): (&TaskContext, &StarParts),
    agent: &str,
    task: &str,
    text: String,
) -> Result<Instruction> {
    let prompt = json!({ "task": task, "instruction": text });
    let messages = star.prompts.messages(STAGE, prompt).map_err(window::prompt_failed)?;
    let request = ChatRequest::new(Role::Classifier, star.thread(ctx.place()), messages);
    let request = request.agent(agent).stage(STAGE);
    let kind = match llm::ask::<Classified>(model, request, "instruction_kind").await {
        Ok(answer) => answer.value.kind,
        Err(error) => {
            let error = stop_or_failure(error)?;
            tracing::debug!(%error, "an instruction could not be classified; it adds to the task");
            InstructionKind::default()
        }
    };
    Ok(Instruction { kind, text })
}
