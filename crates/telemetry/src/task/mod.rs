//! The spans of one task: a node's work, drawn from its recorded effects and its write.

mod calls;

use chrono::{DateTime, Utc};
use serde_json::Value;

use self::calls::object_in;
use super::projection::{WrittenRow, nested};
use super::span_builder::{SpanBuilder, name, task_kind};
use super::{About, Link, Reason, Result, Span, SpanId, Status, ToolCount};
use perihelion_engine::checkpoint::{EffectKind, EffectRow, EffectStatus, Encoded};
use perihelion_llm::{Role, ToolCall, Usage};
use perihelion_star::{
    AgentResult, Reflection, ReflectionStatus, ResultStatus, SpanKind, SupervisorDecision,
    is_supervisor,
};

pub(super) struct Work<'a> {
    pub step: u64,
    pub task: u32,
    pub node: &'a str,
    pub start: DateTime<Utc>,
    /// The time of its step's commit; `None` before it.
    pub committed: Option<DateTime<Utc>>,
    pub written: Option<&'a WrittenRow>,
    pub to: &'a [String],
    /// In the order in which they were asked for.
    pub effects: Vec<&'a EffectRow>,
    /// Effects of the same task in other traces.
    pub elsewhere: Vec<&'a EffectRow>,
}

#[derive(Default)]
struct TaskProgress {
    /// The last answer of the working model, which a reflection judges.
    judged: Option<SpanId>,
    /// Calls it asked for that have not been met yet.
    asked: Vec<(SpanId, usize, DateTime<Utc>, ToolCall)>,
    /// The reflection under way, as its place in the list.
    reflection: Option<usize>,
    reflections: u32,
    decision: Option<SupervisorDecision>,
}

impl Work<'_> {
    /// Draws the work and all below it; returns whether the way taken afterwards is still to be drawn.
    pub(super) fn draw(self, builder: &mut SpanBuilder<'_>) -> Result<bool> {
        let kind = builder.kind(self.node);
        let decides = kind == SpanKind::Transition;
        let first = builder.spans.len();
        let top = builder.id(self.step, self.task, task_kind(kind), &[]);
        let about = match kind {
            SpanKind::Transition => self.way(None),
            SpanKind::Agent => self.agent(),
            SpanKind::Stage => self.stage(builder),
        };
        let mut span = builder.span(top, self.step, self.start, about);
        span.node = Some(self.node.to_owned());
        builder.spans.push(span);
        let mut progress = TaskProgress::default();
        for effect in &self.effects {
            self.effect(builder, top, effect, &mut progress);
        }
        if self.committed.is_some() {
            self.never_sent(builder, top, &mut progress);
        }
        nested(builder, self.node, self.step, self.task, top)?;
        let below = &builder.spans[first + 1..];
        let last = below.iter().map(|span| span.end).max();
        // By another clock than the step's, what happened in it may seem to have begun before it.
        let start = below.iter().map(|span| span.start).fold(self.start, std::cmp::min);
        let tools = tool_counts(&builder.spans[first..]);
        let usage = spent(&builder.spans[first..]);
        let span = &mut builder.spans[first];
        span.start = start;
        let end = if decides { self.committed.or(last) } else { last.or(self.committed) };
        span.end = end.unwrap_or(self.start).max(self.start);
        match &mut span.about {
            About::Agent { tools: called, usage: all, .. } => (*called, *all) = (tools, usage),
            About::Stage { .. } => {}
            _ => {
                span.about = self.way(progress.decision);
                span.name = name(&span.about);
            }
        }
        span.status = self.status();
        Ok(kind == SpanKind::Agent && self.committed.is_some())
    }

    fn way(&self, decision: Option<SupervisorDecision>) -> About {
        let (reason, thought) = self.reason(decision.as_ref());
        // Names in a decision that was not accepted may be anything.
        let accepted = matches!(reason, Reason::Decision | Reason::Breaker) && !self.refused();
        let mut candidates: Vec<String> = Vec::new();
        for decision in decision.iter().filter(|_| accepted) {
            let tasks = decision.tasks.iter().map(|task| &task.agent);
            for agent in decision.selected_agents.iter().chain(tasks).map(|name| name.trim()) {
                if !candidates.iter().any(|known| known == agent) {
                    candidates.push(agent.to_owned());
                }
            }
        }
        About::Transition {
            from: self.node.to_owned(),
            to: self.to.to_vec(),
            reason,
            candidates,
            thought,
        }
    }

    fn reason(&self, decision: Option<&SupervisorDecision>) -> (Reason, Option<String>) {
        let thought = decision.map(|decision| decision.thought_process.clone());
        let Some(written) = self.written.map(|one| &one.written) else {
            return (Reason::Undecided, thought);
        };
        if !is_supervisor(self.node) {
            return (Reason::Edge, None);
        }
        if let Some(reason) = &written.ended {
            return (Reason::Breaker, Some(reason.clone()));
        }
        if written.searched && self.to.iter().all(|to| is_supervisor(to)) {
            return (Reason::Search, thought);
        }
        if !written.refused.is_empty() {
            return (Reason::Refused, Some(written.refused.join("; ")));
        }
        match decision {
            Some(one)
                if one.clarification.as_deref().is_some_and(|text| !text.trim().is_empty()) =>
            {
                (Reason::Clarification, thought)
            }
            Some(_) => (Reason::Decision, thought),
            None => (Reason::NextStage, None),
        }
    }

    fn refused(&self) -> bool {
        self.written.is_some_and(|one| !one.written.refused.is_empty())
    }

    fn result(&self) -> Option<&AgentResult> {
        self.written?.written.result.as_ref()
    }

    fn stage(&self, builder: &SpanBuilder<'_>) -> About {
        About::Stage {
            agent: builder.agent(self.node),
            stage: self.node.to_owned(),
            error: self.written.and_then(|one| one.written.failure.clone()),
        }
    }

    fn agent(&self) -> About {
        let result = self.result();
        let stated = self.written.and_then(|one| one.written.answer.clone());
        let output = result.map(|result| result.output.clone());
        About::Agent {
            agent: self.node.to_owned(),
            reflection_status: result.map(|result| result.reflection.clone()),
            attempts: result.map(|result| result.attempts),
            usage: Usage::default(),
            tools: Vec::new(),
            task: result.map(|result| result.task.clone()),
            output: output.or(stated),
            error: result.and_then(AgentResult::error_message).map(str::to_owned),
        }
    }

    fn status(&self) -> Status {
        let failed = |message: String| Status::Error { message };
        if self.written.is_some_and(|one| one.written.failure.is_some()) {
            return failed("the stage failed, and its agent with it".into());
        }
        match (self.result(), self.committed) {
            (Some(result), _) if result.status == ResultStatus::Failed => {
                if result.not_mine {
                    failed("the agent handed the task back as one for another agent".into())
                } else if result.reflection == "REJECTED" {
                    failed(format!("rejected in each of {} attempts", result.attempts))
                } else {
                    failed("the agent could not do its task".into())
                }
            }
            (_, Some(_)) => Status::Ok,
            _ => Status::Unset,
        }
    }

    fn effect(
        &self,
        builder: &mut SpanBuilder<'_>,
        top: SpanId,
        row: &EffectRow,
        progress: &mut TaskProgress,
    ) {
        match row.kind {
            EffectKind::Clock | EffectKind::Random | EffectKind::Observed => {}
            EffectKind::Interrupt => {
                let about = About::Question {
                    interrupt: uuid::Uuid::from_slice(&row.key)
                        .map_or_else(|_| String::new(), |id| id.to_string()),
                    interrupt_kind: row.name.clone(),
                    answered: row.status != EffectStatus::Started,
                    question: wording(&row.request).filter(|_| builder.view.content),
                    answer: row.outcome.as_ref().and_then(wording).filter(|_| builder.view.content),
                };
                let span = self.child(builder, top, "question", row, about);
                builder.spans.push(Span { end: span.start, open: false, ..span });
            }
            EffectKind::Tool => {
                let span = self.tool(builder, top, row, progress);
                builder.spans.push(span);
            }
            EffectKind::Model if row.name == Role::Reflector.as_str() => {
                self.reflection(builder, top, row, progress);
            }
            EffectKind::Model => {
                self.never_sent(builder, top, progress);
                progress.reflection = None;
                let (span, response) = self.chat(builder, top, row);
                progress.judged = Some(span.span_id);
                if let Some(response) = response {
                    let calls = response.tool_calls.into_iter().enumerate();
                    progress.asked =
                        calls.map(|(at, call)| (span.span_id, at, span.end, call)).collect();
                    if row.name == Role::Supervisor.as_str() {
                        progress.decision = object_in(&response.content);
                    }
                }
                builder.spans.push(span);
            }
        }
    }

    fn child(
        &self,
        builder: &SpanBuilder<'_>,
        parent: SpanId,
        what: &str,
        row: &EffectRow,
        about: About,
    ) -> Span {
        let id = builder.id(self.step, self.task, what, &row.key);
        Span {
            parent: Some(parent),
            end: row.ended_at.unwrap_or(row.started_at).max(row.started_at),
            open: row.status == EffectStatus::Started,
            node: Some(self.node.to_owned()),
            ..builder.span(id, self.step, row.started_at, about)
        }
    }

    /// Draws a judgement; the calls that repair a malformed verdict belong to the same one.
    fn reflection(
        &self,
        builder: &mut SpanBuilder<'_>,
        top: SpanId,
        row: &EffectRow,
        progress: &mut TaskProgress,
    ) {
        self.never_sent(builder, top, progress);
        let at = match progress.reflection {
            Some(at) => at,
            None => {
                progress.reflections += 1;
                let about = About::Reflection {
                    agent: builder.agent(self.node),
                    verdict: None,
                    attempt: progress.reflections,
                    of: builder.view.rounds,
                    feedback: None,
                };
                let mut span = self.child(builder, top, "reflect", row, about);
                let judged = progress.judged.map(|span_id| Link {
                    trace_id: builder.trace,
                    span_id,
                    kind: "judged",
                });
                span.links.extend(judged);
                builder.spans.push(span);
                builder.spans.len() - 1
            }
        };
        progress.reflection = Some(at);
        let (chat, response) = self.chat(builder, builder.spans[at].span_id, row);
        let judged: Option<Reflection> = response.and_then(|answer| object_in(&answer.content));
        let span = &mut builder.spans[at];
        span.end = span.end.max(chat.end);
        span.open = chat.open;
        if let About::Reflection { verdict, feedback, .. } = &mut span.about {
            let word = |judged: &Reflection| match judged.status {
                ReflectionStatus::Approved => "APPROVED",
                ReflectionStatus::Fixed if blank(judged.refined_output.as_deref()) => "APPROVED",
                ReflectionStatus::Fixed => "FIXED",
                ReflectionStatus::Rejected => "REJECTED",
            };
            *verdict = Some(judged.as_ref().map_or("UNVERIFIED", word).to_owned());
            *feedback = judged.and_then(|judged| judged.feedback);
        }
        if !chat.open {
            span.status = Status::Ok;
        }
        builder.spans.push(chat);
    }
}

fn blank(text: Option<&str>) -> bool {
    text.is_none_or(|text| text.trim().is_empty())
}

pub(super) fn spent(spans: &[Span]) -> Usage {
    let mut all = Usage::default();
    for span in spans {
        if let About::Chat { usage, .. } = &span.about {
            all += *usage;
        }
    }
    all
}

/// Counts the calls of each tool that were sent, in order of name.
pub(super) fn tool_counts(spans: &[Span]) -> Vec<ToolCount> {
    let mut counts = std::collections::BTreeMap::new();
    for span in spans {
        if let About::Tool { server, tool, attempts: 1.., .. } = &span.about {
            *counts.entry(format!("{server}.{tool}")).or_insert(0) += 1;
        }
    }
    counts.into_iter().map(|(tool, calls)| ToolCount { tool, calls }).collect()
}

/// Returns a question to a person or an answer as a text: only the words if there are no other fields.
pub(super) fn wording(body: &Encoded) -> Option<String> {
    let value: Value = body.decode().ok()?;
    let words = match &value {
        Value::Object(fields) if fields.len() == 1 => fields.get("question").unwrap_or(&value),
        other => other,
    };
    Some(words.as_str().map_or_else(|| words.to_string(), str::to_owned))
}
