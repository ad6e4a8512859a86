//! The bounds of the star's work, as the settings have them, as a turn keeps them, and as a caller tightens them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The share of a run's time that is reserved for its answer, and its maximum.
const ANSWER_PART: u32 = 5;
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Bounds of the star's work, and its questions to people; a reached bound leads to QA, not to an error.
///
/// The serialized fields stay the same during a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StarLimits {
    /// Super-steps of one turn.
    pub max_steps: u64,
    /// Tokens of one turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Billionths of a US dollar of one turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_nano_usd: Option<u64>,
    /// Seconds of one run; waiting for people ends a run, so it is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_sec: Option<u64>,
    /// Tool calls for one task.
    pub max_tool_calls: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_tool_calls: Option<u64>,
    /// The share of the remaining bounds that a team can use for one task.
    pub of_teams: Allowance,
    /// Times a rejected output is sent back.
    pub max_reflections: u32,
    /// Bytes above which a tool result becomes an artifact.
    pub result_bytes: usize,
    /// Repeated routings without progress at which the breaker trips.
    pub breaker_retries: u32,
    /// Agents that the supervisor is shown.
    #[serde(skip)]
    pub menu: MenuSize,
    /// Tools up to which an agent is shown all of its server's; of more, this many that fit its task.
    pub agent_tools: usize,
    #[serde(skip)]
    pub approval_timeout: Duration,
    /// The same for a run with a person in front of it.
    #[serde(skip)]
    pub interactive_approval_timeout: Duration,
    /// Whether calls that open-world content may have caused need an approval.
    #[serde(skip)]
    pub asks_about_taint: bool,
}

impl StarLimits {
    /// Returns how long the work of a run may last: its deadline, less a part in which the answer is written.
    pub(super) fn work_time(&self) -> Option<Duration> {
        let all = Duration::from_secs(self.deadline_sec?);
        Some(all - (all / ANSWER_PART).min(ANSWER_TIME))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MenuSize {
    /// Agents up to which all are shown.
    pub all: usize,
    /// Of more agents, those shown because they fit.
    pub fitting: usize,
}

/// Bounds of one turn in addition to the settings; `None` means unbounded.
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
}

fn tighter(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
