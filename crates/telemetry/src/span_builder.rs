//! The place of the drawn spans: IDs, names and places of one trace.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::group::Group;
use super::ids::hex;
use super::{About, Reason, Rows, Span, SpanId, Status, TraceId, View};
use perihelion_engine::checkpoint::StepRow;
use perihelion_engine::graph::subgraph_namespace;
use perihelion_engine::ids::ThreadId;
use perihelion_settings::config::TraceScope;
use perihelion_star::{SpanKind, span_kind};

/// Collects the spans of one trace, or of a subgraph's part in it.
pub(super) struct SpanBuilder<'a> {
    pub view: View,
    pub thread: ThreadId,
    pub run: u32,
    pub trace: TraceId,
    pub root: SpanId,
    /// The parent of the root; `None` for the trace's own.
    pub parent: Option<SpanId>,
    /// The drawn thread of a subgraph, if it is one.
    pub within: Option<ThreadId>,
    pub closed: bool,
    pub spans: Vec<Span>,
    /// Place of the thread that is drawn; empty at the top.
    namespace: &'a str,
    graph: &'a str,
    /// The agent of the drawn graph, if it is an agent's own.
    agent: Option<String>,
    began: DateTime<Utc>,
    until: Option<DateTime<Utc>>,
    subgraphs: HashMap<ThreadId, &'a Rows>,
}

impl<'a> SpanBuilder<'a> {
    pub(super) fn new(rows: &'a Rows, group: &Group<'_>, view: View) -> Self {
        let thread = rows.info.id;
        let run = group.first().number;
        Self {
            view,
            thread,
            run,
            trace: trace_id(thread, run, view.scope),
            root: SpanId::root(thread, run),
            parent: None,
            within: None,
            closed: group.is_closed(),
            spans: Vec::new(),
            namespace: &rows.info.namespace,
            graph: &rows.info.graph,
            agent: None,
            began: group.first().started_at,
            until: group.until,
            subgraphs: rows.children.iter().map(|child| (child.info.id, child)).collect(),
        }
    }

    /// Makes a builder for the part of a subgraph's thread that belongs to this trace.
    pub(super) fn inside(
        &self,
        child: &'a Rows,
        group: &Group<'_>,
        (parent, node): (SpanId, &str),
    ) -> Self {
        let is_agent = self.kind(node) == SpanKind::Agent;
        Self {
            thread: self.thread,
            run: self.run,
            trace: self.trace,
            parent: Some(parent),
            within: Some(child.info.id),
            closed: self.closed || group.is_closed(),
            agent: is_agent.then(|| node.to_owned()).or_else(|| self.agent.clone()),
            subgraphs: self.subgraphs.clone(),
            ..Self::new(child, group, self.view)
        }
    }

    pub(super) fn kind(&self, node: &str) -> SpanKind {
        span_kind(self.graph, node)
    }

    /// Returns the agent of a node in the drawn thread: itself, or the owner of the graph.
    pub(super) fn agent(&self, node: &str) -> String {
        match (&self.agent, self.kind(node)) {
            (Some(agent), SpanKind::Stage) => agent.clone(),
            _ => node.to_owned(),
        }
    }

    pub(super) fn subgraph(&self, node: &str, step: u64, task: u32) -> Option<&'a Rows> {
        if self.subgraphs.is_empty() {
            return None;
        }
        let namespace = subgraph_namespace(self.namespace, node, step, task);
        self.subgraphs.get(&self.drawn().child(&namespace)).copied()
    }

    pub(super) fn covers(&self, moment: DateTime<Utc>) -> bool {
        moment >= self.began && self.until.is_none_or(|until| moment < until)
    }

    fn drawn(&self) -> ThreadId {
        self.within.unwrap_or(self.thread)
    }

    pub(super) fn id(&self, step: u64, task: u32, what: &str, key: &[u8]) -> SpanId {
        SpanId::at(self.drawn(), self.run, step, task, what, &hex(key))
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
            within: self.within,
            run: self.run,
            step,
            node: None,
            spent: None,
            about,
        }
    }

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

/// Returns the word that distinguishes the span of a node's work from other ones at its place.
pub(super) fn task_kind(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Transition => "transition",
        SpanKind::Agent => "agent",
        SpanKind::Stage => "stage",
    }
}

pub(super) fn trace_id(thread: ThreadId, run: u32, scope: TraceScope) -> TraceId {
    match scope {
        TraceScope::Run => TraceId::of_run(thread, run),
        TraceScope::Thread => TraceId::of_thread(thread),
    }
}

/// Returns a span's name, by the conventions for generative AI if they have one.
pub(super) fn name(about: &About) -> String {
    match about {
        About::Workflow { graph, .. } => format!("invoke_workflow {graph}"),
        About::Transition { from, to, .. } if to.is_empty() => format!("graph.transition {from}"),
        About::Transition { from, to, .. } => format!("graph.transition {from}→{}", to.join(",")),
        About::Chat { model: Some(model), .. } => format!("chat {model}"),
        About::Chat { .. } => "chat".to_owned(),
        About::Agent { agent, .. } => format!("invoke_agent {agent}"),
        About::Stage { stage, .. } => format!("stage {stage}"),
        // The name in a call that was never sent is the model's own; there may be no such tool.
        About::Tool { attempts: 0, .. } => "execute_tool".to_owned(),
        About::Tool { tool, .. } => format!("execute_tool {tool}"),
        About::Reflection { .. } => "reflect".to_owned(),
        About::Question { interrupt_kind, .. } => format!("interrupt {interrupt_kind}"),
    }
}
