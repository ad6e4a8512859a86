//! A task on its way to an agent.

use serde::{Deserialize, Serialize};

use super::sources::Sources;

/// A task as an agent receives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// Unique in the thread.
    pub id: String,
    pub agent: String,
    pub task: String,
    /// Ids of tasks whose outputs this one is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Filled in when the task is handed out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependency_outputs: Vec<DependencyOutput>,
    /// What of the open world stands behind the task and the outputs given with it.
    #[serde(default, skip_serializing_if = "Sources::is_empty")]
    pub tainted_by: Sources,
}

/// What an upstream agent handed back (S3.01).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DependencyOutput {
    pub task: String,
    pub agent: String,
    pub output: String,
}
