//! The calls of a task: models and tools.

use serde_json::Value;

use super::{TaskProgress, Work};
use crate::ids::{TOOL, hex};
use crate::span_builder::SpanBuilder;
use crate::{About, Span, SpanId, Status};
use perihelion_engine::checkpoint::{EffectKind, EffectRow, EffectStatus};
use perihelion_llm::{ChatRequest, ChatResponse, Role, ToolCall};
use perihelion_star::{SpanKind, is_built_in};

impl Work<'_> {
    pub(super) fn chat(
        &self,
        builder: &SpanBuilder<'_>,
        parent: SpanId,
        row: &EffectRow,
    ) -> (Span, Option<ChatResponse>) {
        let response: Option<ChatResponse> = match row.status {
            EffectStatus::Done => row.outcome.as_ref().and_then(|outcome| outcome.decode().ok()),
            _ => None,
        };
        let request: Option<ChatRequest> =
            if builder.view.content { row.request.decode().ok() } else { None };
        let answer = response.clone().unwrap_or_default();
        let named = response.as_ref().map(|response| response.model.clone());
        let content = builder.view.content && response.is_some();
        let is_stage = builder.kind(self.node) == SpanKind::Stage;
        let works = [Role::Agent, Role::Reflector].iter().any(|role| row.name == role.as_str());
        let about = About::Chat {
            role: row.name.clone(),
            agent: (works || is_stage).then(|| builder.agent(self.node)),
            model: named.filter(|name| !name.is_empty()),
            provider: answer.provider,
            usage: answer.usage,
            finish_reason: answer.finish_reason,
            attempts: row.attempt,
            input: request.map(Box::new),
            output: content.then_some(answer.content),
            calls: if content { answer.tool_calls } else { Vec::new() },
        };
        let mut span = self.child(builder, parent, "chat", row, about);
        span.status = match row.status {
            EffectStatus::Started => Status::Unset,
            EffectStatus::Done => Status::Ok,
            EffectStatus::Failed => {
                let why = failure(row).filter(|_| builder.view.content);
                Status::Error { message: why.unwrap_or_else(|| "the model call failed".to_owned()) }
            }
        };
        (span, response)
    }

    pub(super) fn tool(
        &self,
        builder: &SpanBuilder<'_>,
        top: SpanId,
        row: &EffectRow,
        progress: &mut TaskProgress,
    ) -> Span {
        let request: Value = row.request.decode().unwrap_or_default();
        let (server, tool) = row.name.split_once('.').unwrap_or(("", &row.name));
        let arguments = &request["arguments"];
        let is_met = |call: &ToolCall| call.name == tool && call.arguments == *arguments;
        let met = progress.asked.iter().position(|(.., call)| is_met(call));
        let call_id = met.map(|at| progress.asked.remove(at).3.id);
        let outcome: Value =
            row.outcome.as_ref().and_then(|outcome| outcome.decode().ok()).unwrap_or_default();
        let result = match row.status {
            EffectStatus::Failed => failure(row),
            _ => outcome["text"].as_str().map(str::to_owned),
        };
        let about = About::Tool {
            agent: builder.agent(self.node),
            server: server.to_owned(),
            tool: tool.to_owned(),
            call_id,
            idempotency_key: Some(hex(&row.key)),
            attempts: row.attempt,
            via: serde_json::from_value(outcome["via"].clone()).ok(),
            arguments: builder.view.content.then(|| arguments.to_string()),
            result: result.filter(|_| builder.view.content),
        };
        let mut span = self.child(builder, top, TOOL, row, about);
        span.status = match row.status {
            EffectStatus::Started => Status::Unset,
            EffectStatus::Failed => Status::Error { message: "the call could not be made".into() },
            EffectStatus::Done if outcome["is_error"].as_bool() == Some(true) => {
                Status::Error { message: "the tool reported an error".into() }
            }
            EffectStatus::Done => Status::Ok,
        };
        span
    }

    /// Draws the model's calls that reached no server: the agent's own tools, and rejected ones.
    ///
    /// A call that was sent in this trace and whose outcome a person decided in a later one is drawn there.
    pub(super) fn never_sent(
        &self,
        builder: &mut SpanBuilder<'_>,
        top: SpanId,
        progress: &mut TaskProgress,
    ) {
        if progress.asked.is_empty() {
            return;
        }
        let sent = self.elsewhere.iter().filter(|row| row.kind == EffectKind::Tool);
        let sent: Vec<(&str, Value)> = sent.map(|row| tool_and_arguments(row)).collect();
        let is_elsewhere = |call: &ToolCall| {
            sent.iter().any(|(tool, arguments)| *tool == call.name && *arguments == call.arguments)
        };
        for (chat, at, when, call) in progress.asked.drain(..) {
            if is_elsewhere(&call) {
                continue;
            }
            let status = if is_built_in(&call.name) {
                Status::Ok
            } else {
                Status::Error { message: "the call was refused before it was sent".into() }
            };
            let about = About::Tool {
                agent: builder.agent(self.node),
                server: String::new(),
                tool: call.name,
                call_id: Some(call.id),
                idempotency_key: None,
                attempts: 0,
                via: None,
                arguments: builder.view.content.then(|| call.arguments.to_string()),
                result: None,
            };
            let key = [&chat.to_bytes()[..], &at.to_le_bytes()].concat();
            let id = builder.id(self.step, self.task, "unsent", &key);
            let span = builder.span(id, self.step, when, about);
            builder.spans.push(Span {
                parent: Some(top),
                node: Some(self.node.to_owned()),
                status,
                ..span
            });
        }
    }
}

/// Returns the sent call: the tool without its server, and the arguments.
fn tool_and_arguments(row: &EffectRow) -> (&str, Value) {
    let tool = row.name.split_once('.').map_or(row.name.as_str(), |(_, tool)| tool);
    let mut request: Value = row.request.decode().unwrap_or_default();
    (tool, request["arguments"].take())
}

fn failure(row: &EffectRow) -> Option<String> {
    let outcome: Value = row.outcome.as_ref()?.decode().ok()?;
    outcome["error"].as_str().map(str::to_owned)
}

/// Reads the object in a model's answer, also with a fence or words around it.
pub(super) fn object_in<T: serde::de::DeserializeOwned>(answer: &str) -> Option<T> {
    let inner = || answer.get(answer.find('{')?..=answer.rfind('}')?);
    serde_json::from_str(answer).ok().or_else(|| serde_json::from_str(inner()?).ok())
}
