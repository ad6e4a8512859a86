//! Where spans are drawn: ids, names and places of one trace.

use chrono::{DateTime, Utc};

use super::group::Group;
use super::{About, Reason, Rows, Scope, Span, SpanId, Status, TraceId, View};
use crate::checkpoint::StepRow;
use crate::ids::ThreadId;

/// Collects the spans of one trace.
pub(super) struct Canvas {
    pub view: View,
    pub thread: ThreadId,
    pub run: u32,
    pub trace: TraceId,
    pub root: SpanId,
    pub spans: Vec<Span>,
}

impl Canvas {
    pub(super) fn new(rows: &Rows, group: &Group<'_>, view: View) -> Self {
        let (thread, run) = (rows.info.id, group.first().number);
        let trace = trace_id(thread, run, view.scope);
        let root = SpanId::root(thread, run);
        Self { view, thread, run, trace, root, spans: Vec::new() }
    }

    pub(super) fn id(&self, step: u64, task: u32, what: &str, key: &[u8]) -> SpanId {
        SpanId::at(self.thread, self.run, step, task, what, key)
    }

    /// Draws a span under the root that lasts no time; the caller fills in the rest.
    pub(super) fn span(&self, id: SpanId, step: u64, at: DateTime<Utc>, about: About) -> Span {
        Span {
            trace_id: self.trace,
            span_id: id,
            parent: Some(self.root),
            name: name(&about),
            start: at,
            end: at,
            status: Status::Unset,
            open: false,
            links: Vec::new(),
            thread: self.thread,
            run: self.run,
            step,
            node: None,
            about,
        }
    }

    /// Draws the way from a node to those that come next.
    pub(super) fn transition(
        &mut self,
        step: &StepRow,
        task: u32,
        from: &str,
        to: Vec<String>,
        reason: Reason,
    ) {
        let about = About::Transition {
            from: from.to_owned(),
            to,
            reason,
            candidates: Vec::new(),
            thought: None,
        };
        let id = self.id(step.seq, task, "transition", &[]);
        let node = Some(from.to_owned());
        self.spans.push(Span { node, ..self.span(id, step.seq, step.at, about) });
    }
}

pub(super) fn trace_id(thread: ThreadId, run: u32, scope: Scope) -> TraceId {
    match scope {
        Scope::Run => TraceId::of_run(thread, run),
        Scope::Thread => TraceId::of_thread(thread),
    }
}

/// Returns a span's name, after the conventions for generative AI where they have one.
pub(super) fn name(about: &About) -> String {
    match about {
        About::Workflow { graph, .. } => format!("invoke_workflow {graph}"),
        About::Transition { from, to, .. } if to.is_empty() => format!("graph.transition {from}"),
        About::Transition { from, to, .. } => format!("graph.transition {from}→{}", to.join(",")),
        About::Chat { model: Some(model), .. } => format!("chat {model}"),
        About::Chat { .. } => "chat".to_owned(),
        About::Agent { agent, .. } => format!("invoke_agent {agent}"),
        // The name in a call that was never sent is the model's own; there may be no such tool.
        About::Tool { attempts: 0, .. } => "execute_tool".to_owned(),
        About::Tool { tool, .. } => format!("execute_tool {tool}"),
        About::Reflection { .. } => "reflect".to_owned(),
        About::Question { interrupt_kind, .. } => format!("interrupt {interrupt_kind}"),
    }
}
