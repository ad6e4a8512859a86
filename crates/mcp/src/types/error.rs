//! Why a server or a call failed.

/// Why a server or a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No such table in the servers file.
    #[error("unknown MCP server: {0}")]
    UnknownServer(String),
    /// The server has no such (enabled) tool.
    #[error("the MCP server {server} has no tool named: {tool}")]
    UnknownTool { server: String, tool: String },
    /// What the server says of itself is not what was pinned; it is left alone until a person approves it.
    #[error("the MCP server {server} is in quarantine: {reason}")]
    Quarantined { server: String, reason: String },
    /// The server could not be started or connected; nothing was sent.
    #[error("cannot start the MCP server {server}: {reason}")]
    Start { server: String, reason: String },
    /// The call was certainly not delivered.
    #[error("the call of {tool} was not sent to the MCP server {server}: {reason}")]
    NotSent { server: String, tool: String, reason: String },
    /// The call was sent and its outcome is not known.
    #[error("the outcome of {tool} on the MCP server {server} is unknown: {reason}")]
    Unknown { server: String, tool: String, reason: String },
    /// The server refused the call with a protocol error; the tool did not run.
    #[error("the MCP server {server} refused the call of {tool}: {reason}")]
    Refused { server: String, tool: String, reason: String },
    /// Nobody could be logged in to the server, or out of it.
    #[error("no login to the MCP server {server}: {reason}")]
    Login { server: String, reason: String },
}

impl Error {
    /// Returns the class of the error in one word, to count by.
    pub fn class(&self) -> &'static str {
        match self {
            Self::UnknownServer(_) => "unknown_server",
            Self::UnknownTool { .. } => "unknown_tool",
            Self::Quarantined { .. } => "quarantined",
            Self::Start { .. } => "start_failed",
            Self::NotSent { .. } => "not_sent",
            Self::Unknown { .. } => "outcome_unknown",
            Self::Refused { .. } => "refused",
            Self::Login { .. } => "login_failed",
        }
    }

    /// Returns the error as models hear of it: without the words of a server that nobody has approved.
    pub fn for_models(&self) -> String {
        match self {
            Self::Quarantined { server, .. } => {
                format!("the MCP server {server} is in quarantine until a person approves it")
            }
            other => other.to_string(),
        }
    }

    /// Reports whether the server says something else than what was trusted.
    pub fn is_quarantine(&self) -> bool {
        matches!(self, Self::Quarantined { .. })
    }

    /// Returns what is behind it, without the names of server and tool.
    pub fn reason(&self) -> &str {
        match self {
            Self::UnknownServer(_) | Self::UnknownTool { .. } => "it is not there",
            Self::Quarantined { reason, .. }
            | Self::Start { reason, .. }
            | Self::NotSent { reason, .. }
            | Self::Login { reason, .. }
            | Self::Unknown { reason, .. }
            | Self::Refused { reason, .. } => reason,
        }
    }
}
