//! Why a server or a call failed.

use std::error::Error as StdError;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No such table in the servers file.
    #[error("unknown MCP server: {0}")]
    UnknownServer(String),
    /// The server has no such (enabled) tool.
    #[error("the MCP server {server} has no tool named: {tool}")]
    UnknownTool { server: String, tool: String },
    /// The server's definitions differ from its pin; it is not used until a person approves it.
    #[error("the MCP server {server} is in quarantine: {reason}")]
    Quarantined {
        server: String,
        #[source]
        reason: Reason,
    },
    /// The server could not be started or connected; no call was sent.
    #[error("cannot start the MCP server {server}: {reason}")]
    Start {
        server: String,
        #[source]
        reason: Reason,
    },
    /// The call was certainly not delivered.
    #[error("the call of {tool} was not sent to the MCP server {server}: {reason}")]
    NotSent {
        server: String,
        tool: String,
        #[source]
        reason: Reason,
    },
    /// The call was sent and its outcome is not known.
    #[error("the outcome of {tool} on the MCP server {server} is unknown: {reason}")]
    Unknown {
        server: String,
        tool: String,
        #[source]
        reason: Reason,
    },
    /// The server refused the call with a protocol error; the tool did not run.
    #[error("the MCP server {server} refused the call of {tool}: {reason}")]
    Refused {
        server: String,
        tool: String,
        #[source]
        reason: Reason,
    },
    #[error("no login to the MCP server {server}: {reason}")]
    Login {
        server: String,
        #[source]
        reason: Reason,
    },
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
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

    /// Returns the error for models: without the text of an unapproved server.
    pub fn for_models(&self) -> String {
        match self {
            Self::Quarantined { server, .. } => {
                format!("the MCP server {server} is in quarantine until a person approves it")
            }
            other => other.to_string(),
        }
    }

    pub fn is_quarantine(&self) -> bool {
        matches!(self, Self::Quarantined { .. })
    }

    /// Returns the cause, without the names of server and tool.
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

/// Why something failed: words without secrets, and the error behind them if it has no secret either.
#[derive(Clone, thiserror::Error)]
#[error("{words}")]
pub struct Reason {
    words: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Reason {
    /// Takes an error for the reason; `clean` removes secrets from its words.
    pub(crate) fn of(
        error: impl StdError + Send + Sync + 'static,
        clean: impl FnOnce(&str) -> String,
    ) -> Self {
        let whole = error.to_string();
        let words = clean(&whole);
        let is_clean = words == whole;
        Self { words, source: is_clean.then(|| Arc::new(error) as Arc<_>) }
    }
}

impl From<String> for Reason {
    fn from(words: String) -> Self {
        Self { words, source: None }
    }
}

impl From<&str> for Reason {
    fn from(words: &str) -> Self {
        words.to_owned().into()
    }
}

impl Deref for Reason {
    type Target = str;

    fn deref(&self) -> &str {
        &self.words
    }
}

/// Shows the words alone.
impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.words, f)
    }
}

impl PartialEq for Reason {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl Eq for Reason {}
