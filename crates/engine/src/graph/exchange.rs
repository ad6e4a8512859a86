//! The events and commands between runner and engine, and the pauses of a run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    BlobText, Frontier, Interrupt, NodeEntry, NodeOutput, Result, RunEvent, State, Written,
};

/// Bounds that the engine enforces itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most super-steps in one run; a resume counts from 0 again.
    pub max_steps: u64,
    /// Most tasks that run at the same time; 0 counts as 1.
    pub max_parallel: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_steps: 10_000, max_parallel: 16 }
    }
}

/// The events that a listener wants; other events are not made, because some cost time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Starts and ends of tasks.
    pub tasks: bool,
    /// The update of each node; costs one serialization per update.
    pub updates: bool,
    /// The state after each step; costs a clone of the state while a listener holds an older one.
    pub values: bool,
    /// Commits.
    pub checkpoints: bool,
}

impl Wants {
    /// Wants every event.
    pub const ALL: Self = Self { tasks: true, updates: true, values: true, checkpoints: true };
}

/// The start of a run: a state, the number of its step, the next tasks, and their pending writes.
#[derive(Clone, Debug)]
pub struct Position<S: State> {
    /// The state after step `head`.
    pub state: Arc<S>,
    /// Newest committed step.
    pub head: u64,
    /// The tasks of the next step.
    pub frontier: Frontier,
    /// Pending writes of step head + 1, by task.
    pub done: Vec<(u32, Written<S>)>,
}

/// A task to be run now, or after a delay.
#[derive(Debug)]
pub struct NodeRun<S: State> {
    /// Index in the step's frontier.
    pub task: u32,
    /// Name of the node.
    pub node: String,
    /// The node with its policies.
    pub entry: Arc<NodeEntry<S>>,
    /// The input of a task that a fan-out made.
    pub input: Option<Value>,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// How long to wait before this attempt.
    pub after: Option<Duration>,
    /// The state at the start of the step.
    pub state: Arc<S>,
    /// Number of the step.
    pub step: u64,
}

/// An event that the runner passes to the engine.
#[derive(Debug)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum Event<S: State> {
    /// A task ended, well or not.
    Ended { task: u32, result: Result<NodeOutput<S>> },
    /// The commit that was asked for is durable (or, in a laxer mode, on its way).
    Committed,
    /// The run is to stop at the next chance.
    Stop,
    /// The run's deadline passed: no other task starts.
    Deadline,
}

/// A command of the engine to the runner.
#[derive(Debug)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum Command<S: State> {
    /// Run a task.
    Run(NodeRun<S>),
    /// Store the write of a task, because its step continues; `body` comes from [`Written::to_pending`].
    SavePending { task: u32, body: Vec<u8>, texts: Vec<BlobText> },
    /// Commit the step; `delta` is the JSON list of what its tasks wrote.
    ///
    /// `texts` are the texts of its tasks that no [`Command::SavePending`] contained.
    Commit { seq: u64, delta: Vec<u8>, frontier: Vec<u8>, texts: Vec<BlobText>, finished: bool },
    /// Tell the listeners.
    Emit(RunEvent<S>),
    /// Suspend the run until these questions are answered.
    Suspend(Vec<Interrupt>),
    /// The run is done.
    Finish,
    /// The run was stopped as asked.
    Stopped,
    /// The run cannot continue.
    Fail(EngineError),
}

/// Why a run cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant names its fields")]
pub enum EngineError {
    /// A node failed, and no further attempt follows.
    #[error("the node {node} failed: {message}")]
    Node { node: String, kind: String, message: String },
    /// A node of the frontier cannot be resolved: the thread is parked.
    #[error("{}", missing(node, why.as_deref()))]
    Missing { node: String, why: Option<String> },
    /// A node or its route named a node that does not exist; the step was not committed.
    #[error(
        "the node {node} leads to an unknown node: {target}; correct its target and resume the thread"
    )]
    UnknownTarget { node: String, target: String },
    /// The run made as many steps as [`Limits::max_steps`] permits.
    #[error(
        "the run reached its limit of {0} steps; resume to continue, or raise limits.max_steps"
    )]
    StepLimit(u64),
    /// The run took longer than its deadline.
    #[error("the run passed its deadline; resume to continue, or raise limits.deadline_sec")]
    Deadline,
    /// A written value has no JSON form (a map with keys that are not strings).
    #[error("the update of the node {node} cannot be stored as JSON: {reason}")]
    Encode { node: String, reason: String },
}

impl EngineError {
    pub(crate) fn encode(node: &str, error: &serde_json::Error) -> Self {
        Self::Encode { node: node.to_owned(), reason: error.to_string() }
    }

    /// Reads the limit from the text of an [`EngineError::StepLimit`], which threads store as their error.
    pub fn step_limit_in(text: &str) -> Option<u64> {
        let limit = text.split(' ').find_map(|word| word.parse().ok())?;
        (Self::StepLimit(limit).to_string() == text).then_some(limit)
    }
}

fn missing(node: &str, why: Option<&str>) -> String {
    match why {
        Some(why) => {
            format!("the next node is not there now: {node}: {why}; then resume the thread")
        }
        None => {
            format!("the next node no longer exists: {node}; bring it back and resume the thread")
        }
    }
}

const ALL: &str = "*";

/// Names of nodes; `*` means all nodes. A name can belong to a node that is added later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nodes(BTreeSet<String>);

impl Nodes {
    /// Returns whether it includes a node.
    pub fn has(&self, node: &str) -> bool {
        self.0.contains(node) || self.0.contains(ALL)
    }
}

impl From<Vec<String>> for Nodes {
    fn from(names: Vec<String>) -> Self {
        Self(names.into_iter().collect())
    }
}

impl<const N: usize> From<[&str; N]> for Nodes {
    fn from(names: [&str; N]) -> Self {
        names.map(str::to_owned).to_vec().into()
    }
}

/// The pauses of a run: it then ends as interrupted, without a question, and a resume continues it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pauses {
    /// Before a step with one of these starts.
    pub before: Nodes,
    /// After a step in which one of these ran is committed, unless the graph has come to its end.
    pub after: Nodes,
    /// Whether a resumed run can pause before its first step too; otherwise it passes this step, before which the
    /// previous run may have paused.
    #[serde(skip)]
    pub at_start: bool,
}

impl Pauses {
    /// Returns whether there are no pauses.
    pub fn is_empty(&self) -> bool {
        self.before.0.is_empty() && self.after.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_among_the_names_means_all_nodes() {
        assert!(Nodes::from(["a", "*"]).has("b"));
        assert!(Nodes::from(["a"]).has("a") && !Nodes::from(["a"]).has("b"));
        assert!(!Nodes::from([]).has("a"));
        let written = serde_json::to_string(&Nodes::from(["b", "a"])).unwrap();
        assert_eq!(written, r#"["a","b"]"#);
    }
}
