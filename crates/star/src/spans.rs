//! How the work of the star's nodes, and of its agents' own graphs, is drawn in a trace.
//!
//! A trace is read from stored rows, long after the run and perhaps by a program without its agents. The drawing
//! therefore depends only on the graph's name, the node's name and its writes.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::pipeline::{GRAPH_PREFIX, Outcome};
use crate::{AgentResult, EarlyEnd, Routing, SpanKind, node};

pub fn span_kind(graph: &str, node: &str) -> SpanKind {
    if graph.starts_with(GRAPH_PREFIX) {
        return SpanKind::Stage;
    }
    match node {
        node::SUPERVISOR | node::PREPROCESS => SpanKind::Transition,
        _ => SpanKind::Agent,
    }
}

pub fn is_supervisor(node: &str) -> bool {
    node == node::SUPERVISOR
}

/// The description of the work in an update, for every version.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// The request at the start of a turn, with its context.
    pub request: Option<String>,
    pub context: BTreeMap<String, String>,
    pub answer: Option<String>,
    /// Why the turn ended early.
    pub ended: Option<String>,
    pub refused: Vec<String>,
    pub searched: bool,
    pub result: Option<AgentResult>,
    pub failure: Option<String>,
}

impl Written {
    /// Reads a stored update; unreadable parts are left out.
    pub fn read(update: &Value) -> Self {
        let routing: Option<Routing> = field(update, "routing");
        let searched = routing.as_ref().is_some_and(|routing| {
            routing.searches.last().is_some_and(|last| last.round == routing.round)
        });
        let outcome: Option<Outcome> = field(update, "outcome");
        Self {
            request: field(update, "input_request"),
            context: field(update, "request_context").unwrap_or_default(),
            answer: field(update, "answer"),
            ended: field::<EarlyEnd>(update, "finish_reason").map(|end| end.text),
            refused: field(update, "errors").unwrap_or_default(),
            searched,
            result: field::<Vec<AgentResult>>(update, "results")
                .and_then(|all| all.into_iter().next()),
            failure: outcome.and_then(|outcome| match outcome {
                Outcome::Failed { error, .. } => Some(error.message),
                _ => None,
            }),
        }
    }
}

fn field<T: DeserializeOwned>(update: &Value, key: &str) -> Option<T> {
    serde_json::from_value(update.get(key)?.clone()).ok()
}
