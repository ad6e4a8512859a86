//! One server as the operator configured it.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use super::confinement::{Origin, Sandbox};
use super::table::{ApprovalMode, Effect, ToolTable};
use super::{http::OAuth, redact::Secrets};
use crate::types::AgentBinding;

#[derive(Clone, PartialEq)]
pub struct ServerConfig {
    /// Name of its table: 1 to 64 of `A-Z a-z 0-9 _ -`.
    pub name: String,
    pub description: Option<String>,
    pub transport: Transport,
    pub enabled: bool,
    /// The start of the program fails when this server cannot be scanned.
    pub required: bool,
    /// Bounds process start, handshake and tool list together.
    pub startup_timeout: Duration,
    /// Bounds the silence of a tool call: progress notifications start it again.
    pub tool_timeout: Duration,
    /// Bounds a tool call whatever progress it reports.
    pub tool_total_timeout: Duration,
    /// Bounds a call that the server carries out as a task.
    pub task_timeout: Duration,
    /// Hard cap on one result, in bytes of JSON.
    pub max_result_bytes: usize,
    /// Megabytes of memory for a server started here; `None`: not bounded.
    pub memory_mb: Option<u64>,
    pub max_concurrent_calls: usize,
    /// Calls over time; `None`: not bounded.
    pub rate_limit: Option<RateLimit>,
    /// Time without a call after which the server is stopped; `None`: never.
    pub idle_timeout: Option<Duration>,
    pub breaker: BreakerPolicy,
    /// How long a tool list counts as fresh, whatever the server says.
    pub definitions_ttl: Option<Duration>,
    pub tools: ToolPolicy,
    pub agent: AgentBinding,
    /// Hashes of what starts or reaches it, as written; variables are not expanded.
    pub origin: Origin,
    /// `None`: the server sees and does what this process could.
    pub sandbox: Option<Sandbox>,
    /// Digest of what decides which server is reached; no secret has a part in it.
    pub fingerprint: String,
    pub(crate) secrets: Secrets,
}

impl ServerConfig {
    /// Returns how many calls of one answer are sent concurrently: at most the number that need not wait.
    pub(crate) fn calls_at_once(&self) -> usize {
        let burst = self.rate_limit.map_or(u32::MAX, |limit| limit.calls.get());
        self.max_concurrent_calls.min(usize::try_from(burst).unwrap_or(usize::MAX))
    }

    /// Returns `executable`, which is this program, if the server is a part of it.
    pub(crate) fn own_program<'a>(&self, executable: Option<&'a Path>) -> Option<&'a Path> {
        match &self.transport {
            Transport::Stdio { command, .. } if command == "perihelion" => executable,
            _ => None,
        }
    }
}

/// Shows no value that can contain a secret.
impl std::fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerConfig")
            .field("name", &self.name)
            .field("enabled", &self.enabled)
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    pub calls: NonZeroU32,
    pub per: Duration,
}

/// When calls of a failing server are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// Failures in a row that open the breaker.
    pub failures: usize,
    /// How long it stays open before a call is tried again.
    pub cooldown: Duration,
}

#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// A child process, over its stdin and stdout.
    Stdio {
        /// A program; `perihelion` means this executable itself.
        command: String,
        args: Vec<String>,
        /// The whole environment of the child.
        env: BTreeMap<String, String>,
        /// `None`: the current directory of this process.
        cwd: Option<String>,
    },
    Http {
        url: String,
        bearer_token: Option<String>,
        headers: BTreeMap<String, String>,
        /// How a token is got; `None`: `bearer_token` or a header is one.
        oauth: Option<OAuth>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolPolicy {
    /// `None`: all.
    pub enabled: Option<Vec<String>>,
    pub disabled: Vec<String>,
    pub default_effect: Effect,
    pub default_approval: ApprovalMode,
    /// Settings of individual tools; those listed in `repeatable` have an effect here.
    pub by_name: BTreeMap<String, ToolTable>,
    /// The server is a bundled one, whose read-only claims are trusted.
    pub is_bundled: bool,
    /// The server's hints may make rules milder, and not only stricter.
    pub trust_annotations: bool,
    /// Whether the server's content is open world; `None` means that the tools' hints decide.
    pub open_world: Option<bool>,
}

impl ToolPolicy {
    pub fn refusal(&self, tool: &str) -> Option<&'static str> {
        if self.disabled.iter().any(|name| name == tool) {
            Some("disabled by disabled_tools")
        } else if self.enabled.as_ref().is_some_and(|names| !names.iter().any(|name| name == tool))
        {
            Some("not in enabled_tools")
        } else {
            None
        }
    }

    pub fn named(&self) -> BTreeSet<&str> {
        let names = self.enabled.iter().flatten().chain(self.by_name.keys());
        names.map(String::as_str).collect()
    }
}

/// Something about a server's table that the operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub server: String,
    /// One sentence; ends with the key it is about.
    pub text: String,
}
