//! How a server stands, for people who look.

use serde::{Deserialize, Serialize};

/// What a server is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nobody has looked at it yet.
    New,
    /// Its tools are known from an earlier time; it is started when it is first called.
    Cached,
    /// It is connected.
    Running,
    /// It was connected, and is started again when it is next called.
    Stopped,
    /// It failed so often that calls are refused for a while.
    BreakerOpen,
    /// It takes no calls until a person has logged in, or until its client credentials are fixed.
    NeedsLogin,
    /// It could not be started or connected, or did not tell its tools.
    Failed,
}

impl Phase {
    /// Returns the phase in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Cached => "cached",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::BreakerOpen => "breaker open",
            Self::NeedsLogin => "needs login",
            Self::Failed => "failed",
        }
    }
}

/// How one server stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerState {
    pub server: String,
    pub phase: Phase,
    /// `stdio` or `http`.
    pub transport: String,
    /// Number of tools that are offered.
    pub tools: usize,
    /// Empty while it is not known.
    #[serde(default)]
    pub protocol_version: String,
    /// Why it failed, or why calls are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
