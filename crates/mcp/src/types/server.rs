//! A server as known after a scan, and its status.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{error::Result, tool::ToolDefinition};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knowledge {
    /// As written in the servers file.
    pub file: String,
    pub content: serde_json::Value,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentBinding {
    /// The kind of agent; by default the natural one of a bundled server, else the plain one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge: Option<Knowledge>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundled: Option<String>,
}

impl AgentBinding {
    fn is_silent(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// Name of its table in the servers file.
    pub name: String,
    /// The operator's description, else the server's instructions or title; may be empty.
    pub description: String,
    /// Name and version that the server reported.
    pub server_version: String,
    pub protocol_version: String,
    pub tools: Vec<ToolDefinition>,
    /// Tools left out of the list, with the reason (malformed definition, disabled …).
    #[serde(default)]
    pub rejected_tools: Vec<(String, String)>,
    /// The operator declared the server's content open world, including its definitions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open_world: bool,
    /// Its tools count as reaching the open world only because neither the operator nor the server declared otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undeclared: bool,
    #[serde(default, skip_serializing_if = "AgentBinding::is_silent")]
    pub agent: AgentBinding,
}

#[derive(Debug)]
pub struct ServerStatus {
    pub name: String,
    pub outcome: Result<ServerInfo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    New,
    /// Its tools are known from an earlier time; it is started when it is first called.
    Cached,
    Running,
    /// It was connected, and is started again when it is next called.
    Stopped,
    /// It failed so often that calls are refused for a while.
    BreakerOpen,
    /// It takes no calls until a person has logged in, or until its client credentials are fixed.
    NeedsLogin,
    /// It could not be started or connected, or did not list its tools.
    Failed,
}

impl Phase {
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerState {
    pub server: String,
    pub phase: Phase,
    /// `stdio` or `http`.
    pub transport: String,
    pub tools: usize,
    /// Empty while it is not known.
    #[serde(default)]
    pub protocol_version: String,
    /// Why it failed, or why calls are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
