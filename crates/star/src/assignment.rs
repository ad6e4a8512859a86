//! A task on its way to an agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sources::Sources;

/// A task as an agent receives it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// Unique in the thread.
    pub id: String,
    pub agent: String,
    pub task: String,
    /// What the task is about, as the supervisor read it from the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<Entity>,
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

impl Assignment {
    /// Returns the task with what it is about listed below it, as models read it.
    pub fn described(&self) -> String {
        let mut text = self.task.clone();
        if !self.entities.is_empty() {
            text.push_str("\n\nIt is about:");
        }
        for Entity { name, value } in &self.entities {
            text.push_str(&format!("\n- {name}: {value}"));
        }
        text
    }

    /// Returns the value of the entity of this name.
    pub fn entity(&self, name: &str) -> Option<&str> {
        self.entities.iter().find(|entity| entity.name == name).map(|entity| entity.value.as_str())
    }
}

/// One thing that a task is about: a person, a date, an identifier, a metric (S3.02).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entity {
    /// What it is, such as `person`; for documents: `collection`, `document`, `format`, `section`, `author`, `since`, `until`. The
    /// same name twice compares both.
    pub name: String,
    /// Dates as YYYY-MM-DD.
    pub value: String,
}

/// What an upstream agent handed back (S3.01).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DependencyOutput {
    pub task: String,
    pub agent: String,
    pub output: String,
}
