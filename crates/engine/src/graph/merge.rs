//! Ends a super-step: merges what its tasks wrote, in frontier order, and decides what runs next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::builder::Next;
use super::{END, EngineError, Frontier, Graph, NodeEntry, State, Target, Written};

/// A task's part in a step that is complete.
#[derive(Clone, Debug)]
pub struct Finished<S: State> {
    /// The update and targets of the task.
    pub written: Written<S>,
    /// The node at the time when it ran, whose routes count; `None` for an input or an edit.
    pub entry: Option<Arc<NodeEntry<S>>>,
}

/// The merged writes of a step: the data to store, and the next tasks.
#[derive(Debug)]
pub struct Merged {
    /// JSON list of the writes in frontier order.
    pub delta: Vec<u8>,
    /// The tasks of the next step.
    pub frontier: Frontier,
    /// `frontier` as it is stored.
    pub encoded_frontier: Vec<u8>,
}

/// Merges what tasks wrote into the state and decides the next frontier.
///
/// Order is the frontier's, never that of completion, so the outcome is the same however the tasks
/// overtook each other.
///
/// # Errors
/// [`EngineError::Encode`] if a value has no JSON form, and [`EngineError::UnknownTarget`] if a `goto` or a route names
/// a node that does not exist. Only a route's unknown target leaves the state merged; it must then be read again.
pub fn merge<S: State>(
    graph: &Graph<S>,
    state: &mut Arc<S>,
    finished: Vec<Finished<S>>,
    joins: BTreeMap<String, BTreeSet<String>>,
) -> Result<Merged, EngineError> {
    let mut written = Vec::new();
    let mut routes = Vec::new();
    for Finished { written: mut one, entry } in finished {
        let goto = one.goto.take();
        check(graph, &one.node, goto.as_deref().unwrap_or_default())?;
        routes.push((one.node.clone(), goto, entry));
        written.push(one);
    }
    let delta = serde_json::to_vec(&written).map_err(|error| unstorable(&written, &error))?;
    let merged = Arc::make_mut(state);
    for one in written {
        merged.apply(one.update);
    }
    let mut frontier = Frontier { tasks: Vec::new(), joins };
    for (node, goto, entry) in &routes {
        match (goto, entry.as_deref().map(|entry| &entry.next)) {
            (Some(targets), _) => targets.iter().cloned().for_each(|to| frontier.push(to)),
            (None, Some(Next::Edges(edges))) => {
                edges.iter().for_each(|to| frontier.push(Target::node(to)));
            }
            (None, Some(Next::Route(route))) => {
                let targets = route(merged);
                check(graph, node, &targets)?;
                targets.into_iter().for_each(|to| frontier.push(to));
            }
            (None, None) => {}
        }
    }
    arrive(graph, routes.iter().map(|(node, ..)| node), &mut frontier);
    let encoded_frontier =
        serde_json::to_vec(&frontier).map_err(|error| EngineError::encode(END, &error))?;
    Ok(Merged { delta, frontier, encoded_frontier })
}

/// Rejects targets that do not exist; with a resolver it accepts all targets, because they can appear later.
fn check<S: State>(graph: &Graph<S>, node: &str, targets: &[Target]) -> Result<(), EngineError> {
    let unknown = targets.iter().find_map(|target| match target {
        Target::Node(to) if to != END && !graph.may_have(to) => Some(to),
        Target::Send { node: to, .. } if to == END || !graph.may_have(to) => Some(to),
        _ => None,
    });
    match unknown {
        Some(to) => {
            Err(EngineError::UnknownTarget { node: node.to_owned(), target: to.to_owned() })
        }
        None => Ok(()),
    }
}

fn unstorable<S: State>(written: &[Written<S>], error: &serde_json::Error) -> EngineError {
    let culprit = written.iter().find(|one| serde_json::to_vec(one).is_err());
    EngineError::encode(culprit.map_or("", |one| &one.node), error)
}

/// Marks the arrivals of a step at the joins that wait for them, and opens complete joins.
///
/// All arrivals count before any join opens, so that a node run many times in the step arrives once.
fn arrive<'a, S: State>(
    graph: &Graph<S>,
    nodes: impl Iterator<Item = &'a String> + Clone,
    frontier: &mut Frontier,
) {
    for (to, sources) in graph.joins() {
        let here: Vec<&String> = nodes.clone().filter(|node| sources.contains(*node)).collect();
        if here.is_empty() {
            continue;
        }
        let arrived = frontier.joins.entry(to.clone()).or_default();
        arrived.extend(here.into_iter().cloned());
        if arrived.len() == sources.len() {
            frontier.joins.remove(to);
            frontier.push(Target::node(to));
        }
    }
}
