//! The word for what became of an output that was judged.

use serde::{Deserialize, Serialize};

/// What became of an output that was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ReflectionVerdict {
    Approved,
    Fixed,
    Rejected,
    /// No verdict could be had.
    Unverified,
}

impl ReflectionVerdict {
    /// Returns the word that is kept with results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "APPROVED",
            Self::Fixed => "FIXED",
            Self::Rejected => "REJECTED",
            Self::Unverified => "UNVERIFIED",
        }
    }
}
