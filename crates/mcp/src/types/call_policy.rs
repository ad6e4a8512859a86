//! What surrounds the calls of one tool, and which of two such rules is the stricter.

use serde::{Deserialize, Serialize};

/// What surrounds the calls of one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallPolicy {
    pub needs_approval: bool,
    pub approved_in_advance: bool,
    pub read_only: bool,
    pub repeatable: bool,
    pub open_world: bool,
}

impl CallPolicy {
    /// Returns the stricter of both, rule by rule.
    pub fn stricter(self, other: Self) -> Self {
        Self {
            needs_approval: self.needs_approval || other.needs_approval,
            approved_in_advance: self.approved_in_advance && other.approved_in_advance,
            read_only: self.read_only && other.read_only,
            repeatable: self.repeatable && other.repeatable,
            open_world: self.open_world || other.open_world,
        }
    }

    /// Returns what a call is made under that a person has allowed: nothing that could be asked is left.
    pub fn allowed(self) -> Self {
        Self { needs_approval: true, approved_in_advance: false, read_only: false, ..self }
    }

    /// Tells whether a call decided on under these rules would need another decision under those.
    pub(crate) fn is_weaker_than(self, now: Self) -> bool {
        let strict = Self { repeatable: self.repeatable, ..self.stricter(now) };
        strict != self
    }
}
