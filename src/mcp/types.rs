//! The words of a tool exchange: servers, tools, calls, outcomes, and the trait that performs them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::Gate;
use super::exchange::{CallRound, Reply};

/// What a server says of a tool's nature; untrusted, so it may tighten policy and never loosen it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolAnnotations {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

/// One tool of one server, as listed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    pub name: String,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the structured result, where the server promises one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    #[serde(default)]
    pub annotations: ToolAnnotations,
    /// The *operator* declared in the servers file that the call may be repeated (read-only or idempotent).
    #[serde(default)]
    pub repeatable: bool,
    /// A person approves each call: the operator wants it so, or the server calls the tool destructive.
    #[serde(default)]
    pub needs_approval: bool,
    /// Seconds for which a call's approval can be given, where the operator says so of this tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_timeout_sec: Option<u32>,
    /// The operator approved every call in advance (`approval_mode = "approve"`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub approved_in_advance: bool,
    /// A call changes nothing, by the word of the operator or of a server that is trusted in this.
    #[serde(default, skip_serializing_if = "is_false")]
    pub read_only: bool,
    /// Anybody may have written what the tool returns, such as the authors of web pages.
    #[serde(default, skip_serializing_if = "is_false")]
    pub open_world: bool,
}

impl ToolDefinition {
    /// Returns what surrounds its calls.
    pub fn gate(&self) -> Gate {
        Gate {
            needs_approval: self.needs_approval,
            approved_in_advance: self.approved_in_advance,
            read_only: self.read_only,
            repeatable: self.repeatable,
            open_world: self.open_world,
        }
    }

    /// Returns the tool with other rules around its calls.
    pub fn under(&self, gate: Gate) -> Self {
        Self {
            needs_approval: gate.needs_approval,
            approved_in_advance: gate.approved_in_advance,
            read_only: gate.read_only,
            repeatable: gate.repeatable,
            open_world: gate.open_world,
            ..self.clone()
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

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
    #[serde(default, skip_serializing_if = "is_false")]
    pub open_world: bool,
    /// Its tools count as reaching the open world only because nobody said anything of them: neither the operator nor
    /// the server.
    #[serde(default, skip_serializing_if = "is_false")]
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

/// Where a bundled server finds whose call it is.
pub const TENANT_META: &str = "dev.perihelion/tenant";

/// What travels with a call besides its arguments.
#[derive(Clone, Debug, Default)]
pub struct CallContext {
    /// Stable over every attempt of the same call; sent in `_meta` under `dev.perihelion/idempotency-key`.
    pub idempotency_key: String,
    /// Whose call it is; sent in `_meta` under [`TENANT_META`] to bundled servers, which are this program itself.
    pub tenant: String,
    /// W3C `traceparent`, sent in `_meta` where present.
    pub traceparent: Option<String>,
    /// The rules under which the call was decided on; it is not sent where stricter ones hold by now.
    pub under: Option<Gate>,
    /// Takes what the server says of how far it is; what there is no room for is left out.
    pub progress: Option<mpsc::Sender<Progress>>,
}

/// How far a call is, in the server's words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    pub done: f64,
    /// What `done` comes to in the end, where that is known.
    pub total: Option<f64>,
    /// One short line.
    pub message: String,
}

/// What an answered call ran over: the words by which a server's own log can be searched for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Via {
    /// Negotiated MCP protocol version.
    pub protocol_version: String,
    /// `pipe` (stdio) or `tcp` (HTTP), as the OpenTelemetry conventions name transports.
    pub transport: String,
    /// The session of a streamable HTTP server that keeps one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Id of the JSON-RPC request; of the last one, where the call was made again.
    pub request_id: String,
}

/// How a call that reached the server ended; a tool's own error is data, not an `Err`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolOutcome {
    pub is_error: bool,
    /// All text content, joined by newlines; non-text blocks are described in brackets.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// None in what was recorded before this was kept, and where a person supplied the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
}

/// Performs tool calls on the configured servers.
#[async_trait]
pub trait ToolHost: Send + Sync {
    /// Returns the servers that could be scanned and those that could not, in the file's order.
    async fn scan(&self) -> Vec<ServerStatus>;

    /// Goes one round of a call, once; never retries a call that may have run.
    ///
    /// # Errors
    /// [`Error::NotSent`] and the like when the call certainly did not run; [`Error::Unknown`] when it may have.
    async fn exchange(
        &self,
        server: &str,
        tool: &str,
        round: CallRound,
        context: CallContext,
    ) -> Result<Reply, Error>;

    /// Calls a tool that neither asks nor becomes a task; one that does is an error.
    ///
    /// # Errors
    /// As [`ToolHost::exchange`].
    async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        context: CallContext,
    ) -> Result<ToolOutcome, Error> {
        let unknown = |reason: &str| Error::Unknown {
            server: server.to_owned(),
            tool: tool.to_owned(),
            reason: reason.to_owned(),
        };
        match self.exchange(server, tool, CallRound::first(arguments), context).await? {
            Reply::Done(outcome) => Ok(outcome),
            Reply::Asked { .. } => Err(unknown("the server asked for input, and nobody is there")),
            Reply::Task { .. } => {
                Err(unknown("the server made a task of it, which nobody follows"))
            }
        }
    }

    /// Says why calls of a server are refused for now, if they are: its circuit breaker is open.
    ///
    /// It stands in the prompts of every thread, so nothing in it may be what a server wrote.
    fn failure(&self, _server: &str) -> Option<String> {
        None
    }

    /// Returns what surrounds the calls of a tool now, as far as that is known without asking its server.
    fn gate(&self, _server: &str, _tool: &str) -> Option<Gate> {
        None
    }

    /// Returns how many calls of one answer the server is given at a time; more than that would only wait.
    fn at_once(&self, _server: &str) -> usize {
        1
    }

    /// Closes every session and ends every child process, in parallel.
    async fn close(&self);
}

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
