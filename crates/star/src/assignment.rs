//! A task on its way to an agent: where its words come from, and what people who approve its calls add (S3.10).

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The source of a text: `server.tool` for results, `server` for a server's definitions.
pub type Sources = BTreeSet<String>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// Unique in the thread.
    pub id: String,
    pub agent: String,
    pub task: String,
    /// The subject of the task, as the supervisor read it from the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<Entity>,
    /// Ids of tasks whose outputs this one is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Filled in when the task is handed out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependency_outputs: Vec<DependencyOutput>,
    /// The open-world sources of the task and of the outputs passed with it.
    #[serde(default, skip_serializing_if = "Sources::is_empty")]
    pub tainted_by: Sources,
}

/// The last part of the id of a task that is the whole request, for the only agent there is.
///
/// No ID that a model writes ends so.
pub(super) const DIRECT: &str = ".@direct";

impl Assignment {
    /// Tells whether it is the request itself, which no model planned and no other agent could take.
    pub(super) fn is_direct(&self) -> bool {
        self.id.ends_with(DIRECT)
    }

    /// Returns the task for models, with its subject listed below it.
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
}

/// One thing that a task is about: a person, a date, an identifier, a metric (S3.02).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entity {
    /// What it is, such as `person`; for documents: `collection`, `document`, `format`, `section`, `author`, `since`, `until`. The
    /// same name twice compares both.
    #[schemars(length(max = 60))]
    pub name: String,
    /// Dates as YYYY-MM-DD.
    #[schemars(length(max = 300))]
    pub value: String,
}

/// The output of an upstream agent (S3.01).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DependencyOutput {
    pub task: String,
    pub agent: String,
    pub output: String,
}

/// How an instruction stands to the task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InstructionKind {
    /// It adds to the task.
    #[default]
    Enhance,
    /// It takes the place of the task.
    Override,
}

/// An instruction, and its relation to the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instruction {
    pub kind: InstructionKind,
    pub text: String,
}

/// Returns a task as instructions left it, in the order in which they were given.
pub(super) fn effective(task: &str, instructions: &[Instruction]) -> String {
    let mut effective = task.to_owned();
    for Instruction { kind, text } in instructions {
        match kind {
            InstructionKind::Override => effective.clone_from(text),
            InstructionKind::Enhance => {
                effective.push_str("\n\nIn addition, as a person asked who approved a call: ");
                effective.push_str(text);
            }
        }
    }
    effective
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3.10
    #[test]
    fn instructions_add_to_the_task_or_take_its_place_in_their_order() {
        let one = |kind, text: &str| Instruction { kind, text: text.into() };
        let add = one(InstructionKind::Enhance, "sign it");
        let other = one(InstructionKind::Override, "delete it");
        assert!(effective("write", std::slice::from_ref(&add)).ends_with("a call: sign it"));
        assert_eq!(effective("write", &[add.clone(), other.clone()]), "delete it");
        assert!(effective("write", &[other, add]).starts_with("delete it\n\nIn addition"));
    }
}
