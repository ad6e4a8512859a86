//! What a person who approves a call wants besides: more of the same task, or another one (S3.10).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// An instruction, and how it stands to the task.
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
