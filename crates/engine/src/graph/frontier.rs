//! The next tasks and the writes of finished tasks: the parts of a run that are stored.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blob::take_texts;
use super::{BlobName, BlobText, END, State};

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
