//! The next tasks and the writes of finished tasks, the parts of a run that are stored; merges the writes of a step.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blob::take_texts;
use super::builder::Next;
use super::{BlobName, BlobText, END, EngineError, Graph, NodeEntry, State};
use std::sync::Arc;

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum Target {
    /// To a node, once per step however many routes lead there.
    Node(String),
    /// To a node with a separate input (fan-out); each target is a task.
    Send { node: String, input: Value },
    /// This branch ends.
    End,
}

impl Target {
    /// Leads to a node; [`END`] is [`Target::End`], so that an end is one thing however it is written.
    pub fn node(name: impl Into<String>) -> Self {
        let name = name.into();
        if name == END { Self::End } else { Self::Node(name) }
    }

    /// Leads to a node with a separate input.
    pub fn send(node: impl Into<String>, input: Value) -> Self {
        Self::Send { node: node.into(), input }
    }
}

/// One task of a frontier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Name of the node.
    #[serde(rename = "n")]
    pub node: String,
    /// The separate input from a fan-out.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
}

/// The tasks of the next super-step, and the joins that still wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Frontier {
    /// The tasks, in the order in which their updates are merged.
    #[serde(rename = "t")]
    pub tasks: Vec<Task>,
    /// Join target → the nodes that have arrived.
    #[serde(rename = "j", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub joins: BTreeMap<String, BTreeSet<String>>,
}

impl Frontier {
    /// Makes a frontier of one plain task per name.
    pub fn of<'a>(nodes: impl IntoIterator<Item = &'a str>) -> Self {
        let mut frontier = Self::default();
        nodes.into_iter().for_each(|node| frontier.push(Target::node(node)));
        frontier
    }

    /// Returns the nodes of its tasks, one for each task.
    pub fn names(&self) -> Vec<String> {
        self.tasks.iter().map(|task| task.node.clone()).collect()
    }

    /// Adds a target; a plain node is added once, and the end of a branch adds no task.
    pub(super) fn push(&mut self, target: Target) {
        match target {
            Target::End => {}
            Target::Node(node) if node == END => {}
            Target::Send { node, input } => self.tasks.push(Task { node, input: Some(input) }),
            Target::Node(node) => {
                if !self.tasks.iter().any(|task| task.input.is_none() && task.node == node) {
                    self.tasks.push(Task { node, input: None });
                }
            }
        }
    }
}

/// The write of a task, with the targets that it chose.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Written<S: State> {
    /// Name of the node.
    #[serde(rename = "n")]
    pub node: String,
    /// The partial update of the state.
    #[serde(rename = "u")]
    pub update: S::Update,
    /// The targets that the node chose in place of its edges.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub goto: Option<Vec<Target>>,
    /// The texts that the update references and the store contains.
    #[serde(rename = "b", default, skip_serializing_if = "Vec::is_empty")]
    pub blobs: Vec<BlobName>,
}

/// The write of a task of any graph, in the form of the version that stored it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct StoredWrite {
    /// Name of the node.
    #[serde(rename = "n")]
    pub node: String,
    /// The fields that were written, by name.
    #[serde(rename = "u", default)]
    pub update: Value,
    /// The targets that the node chose in place of its edges.
    #[serde(rename = "g", default)]
    pub goto: Option<Vec<Target>>,
}

impl<S: State> Written<S> {
    /// Takes an update to be stored; its long texts are returned, and only named in it from then on.
    pub fn new(
        node: impl Into<String>,
        mut update: S::Update,
        goto: Option<Vec<Target>>,
    ) -> (Self, Vec<BlobText>) {
        let (blobs, texts) = take_texts(&mut update);
        (Self { node: node.into(), update, goto, blobs }, texts)
    }

    /// Encodes it as a pending write: with the schema version, because it may outlive an upgrade.
    ///
    /// # Errors
    /// When the update has no JSON form.
    pub fn to_pending(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&(S::SCHEMA_VERSION, self))
    }
}

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
