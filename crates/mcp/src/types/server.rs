//! A server as it is known after a scan, and how it stands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{error::Error, tool::ToolDefinition};

/// A file that the operator wrote about what a server holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knowledge {
    /// As it stands in the servers file.
    pub file: String,
    pub content: serde_json::Value,
}

/// How the operator wants the agent of a server to work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentBinding {
    /// The kind of agent; by default the natural one of a bundled server, else the plain one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Which tool plays which role for that kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, String>,
    /// What the operator wrote down of what the server holds, for the kind to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge: Option<Knowledge>,
    /// The bundled server that this is, where the table starts one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundled: Option<String>,
}

impl AgentBinding {
    fn is_silent(&self) -> bool {
        *self == Self::default()
    }
}

/// A scanned server: what an agent can be made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// Name of its table in the servers file.
    pub name: String,
    /// The operator's description, else the server's instructions or title; may be empty.
    pub description: String,
    /// Name and version that the server reported.
    pub server_version: String,
    /// Negotiated MCP protocol version.
    pub protocol_version: String,
    pub tools: Vec<ToolDefinition>,
    /// Tools left out of the list, with the reason (malformed definition, disabled …).
    #[serde(default)]
    pub rejected_tools: Vec<(String, String)>,
    /// The operator declared that anybody may have written what this server says, its definitions too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open_world: bool,
    /// Its tools count as reaching the open world only because nobody said anything of them: neither the operator nor
    /// the server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undeclared: bool,
    #[serde(default, skip_serializing_if = "AgentBinding::is_silent")]
    pub agent: AgentBinding,
}

/// The result of scanning one configured server.
#[derive(Debug)]
pub struct ServerStatus {
    pub name: String,
    pub outcome: Result<ServerInfo, Error>,
}

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
