//! What a turn is given to spend by the one who asked for it: a tenant's day, or the star above.

use serde::{Deserialize, Serialize};

/// Bounds of one turn beside those of the settings; none: not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Billionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nano_usd: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// Of each run of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

impl Allowance {
    /// Returns the tighter one of each bound.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        Self {
            steps: tighter(self.steps, other.steps),
            tokens: tighter(self.tokens, other.tokens),
            nano_usd: tighter(self.nano_usd, other.nano_usd),
            tool_calls: tighter(self.tool_calls, other.tool_calls),
            seconds: tighter(self.seconds, other.seconds),
        }
    }

    /// Returns whether nothing more can be done with it.
    pub fn is_spent(&self) -> bool {
        let bounds = [self.steps, self.tokens, self.nano_usd, self.tool_calls, self.seconds];
        bounds.contains(&Some(0))
    }
}

/// Returns the tighter one of two bounds.
fn tighter(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
