//! A trace as a plain list of events, for readers without a tree.

use std::cmp::Reverse;
use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{About, Reason, Span, SpanId, Status};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// The node or agent of the event; the graph if the run as a whole failed.
    pub agent: String,
    pub message: String,
    pub data: Value,
    pub timestamp: DateTime<Utc>,
    pub span_id: SpanId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum EventKind {
    Decision,
    Tool,
    Message,
    Result,
    /// Any of these failed.
    Error,
}

/// Lists finished spans, in the order in which they ended.
///
/// Spans that ended at the same moment are ordered from the inside out.
pub fn events(spans: &[Span]) -> Vec<Event> {
    let parents: HashMap<SpanId, Option<SpanId>> =
        spans.iter().map(|span| (span.span_id, span.parent)).collect();
    let depth = |span: &Span| {
        let parent = |id: &SpanId| parents.get(id).copied().flatten();
        std::iter::successors(span.parent, parent).take(spans.len()).count()
    };
    let mut over: Vec<&Span> = spans.iter().filter(|span| !span.open).collect();
    over.sort_by_cached_key(|span| (span.end, Reverse(depth(span)), Reverse(span.start)));
    over.into_iter().filter_map(event).collect()
}

fn event(span: &Span) -> Option<Event> {
    let (kind, agent, message, data) = match &span.about {
        About::Workflow { graph, .. } if span.failed() => {
            (EventKind::Error, graph.clone(), None, Value::Null)
        }
        About::Transition { from, to, reason, candidates, thought } => {
            if matches!(reason, Reason::Edge | Reason::Undecided) && !span.failed() {
                return None;
            }
            let data = json!({ "to": to, "reason": reason, "candidates": candidates });
            (EventKind::Decision, from.clone(), thought.clone(), data)
        }
        About::Tool { agent, server, tool, attempts, arguments, result, .. } => {
            let data = json!({ "server": server, "tool": tool, "arguments": arguments, "attempts": attempts });
            (EventKind::Tool, agent.clone(), result.clone(), data)
        }
        About::Chat { role, agent, model, usage, output, calls, .. } => {
            let data = json!({ "role": role, "model": model, "usage": usage, "calls": calls });
            let text = output.clone().filter(|text| !text.is_empty());
            (EventKind::Message, agent.clone().unwrap_or_else(|| role.clone()), text, data)
        }
        About::Agent { agent, reflection_status, attempts, task, output, error, .. } => {
            let data =
                json!({ "task": task, "reflection": reflection_status, "attempts": attempts });
            let text = if span.failed() { error } else { output };
            (EventKind::Result, agent.clone(), text.clone(), data)
        }
        About::Stage { agent, stage, error } if span.failed() => {
            (EventKind::Error, agent.clone(), error.clone(), json!({ "stage": stage }))
        }
        // The spans within a stage are events themselves.
        About::Stage { .. } => return None,
        // A reflection is listed as its model call, and the answer to a question as a message.
        About::Workflow { .. } | About::Reflection { .. } | About::Question { .. } => return None,
    };
    let (kind, reported) = match &span.status {
        Status::Error { message: why } => {
            (EventKind::Error, message.unwrap_or_else(|| why.clone()))
        }
        _ => (kind, message.unwrap_or_default()),
    };
    let timestamp = span.end;
    let span_id = span.span_id;
    Some(Event { kind, agent, message: reported, data, timestamp, span_id })
}
