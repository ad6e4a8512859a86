//! Reads `mcp-servers.toml`: which servers there are, how to reach them, what their tools may do.

mod confinement;
mod expand;
mod resolve;
mod table;

use std::{collections::BTreeMap, path::Path, time::Duration};

use super::{redact::Secrets, sandbox::Sandbox};
use crate::config::strict::{self, Error};

pub use table::{ApprovalMode, Effect};

/// The servers file, checked and with every variable expanded.
#[derive(Clone, Debug, Default)]
pub struct ServersFile {
    /// All servers, the disabled ones too, in the order in which they are written.
    pub servers: Vec<ServerConfig>,
    /// What was understood but has no effect yet, one sentence each, for the operator's eyes.
    pub warnings: Vec<String>,
}

impl ServersFile {
    /// Reads and checks the file at `path`; `env` looks up environment variables.
    ///
    /// # Errors
    /// [`Error::Read`] when the file cannot be read; otherwise as [`ServersFile::parse`].
    pub fn load(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::Read { path: path.to_owned(), source })?;
        Self::parse(path, &text, env)
    }

    /// Checks the text of a servers file; `path` only names it in errors.
    ///
    /// # Errors
    /// [`Error::Parse`] with line and column for broken TOML and unknown keys, [`Error::Value`] naming
    /// server and key for a value that cannot be used or a variable that is not set.
    pub fn parse(
        path: &Path,
        text: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let file: table::File = strict::parse(path, text)?;
        let mut tables: Vec<_> = file.mcp_servers.into_iter().collect();
        tables.sort_by_key(|(_, table)| table.span().start);
        let mut servers = Vec::with_capacity(tables.len());
        let mut warnings = Vec::new();
        for (name, table) in tables {
            servers.push(resolve::server(path, name, table.into_inner(), env, &mut warnings)?);
        }
        Ok(Self { servers, warnings })
    }

    /// Returns the server of that name.
    pub fn get(&self, name: &str) -> Option<&ServerConfig> {
        self.servers.iter().find(|server| server.name == name)
    }
}

/// One server as the operator configured it.
#[derive(Clone, PartialEq)]
pub struct ServerConfig {
    /// Name of its table: 1 to 64 of `A-Z a-z 0-9 _ -`.
    pub name: String,
    /// The operator's words for the menu.
    pub description: Option<String>,
    pub transport: Transport,
    pub enabled: bool,
    /// The start of the program fails when this server cannot be scanned.
    pub required: bool,
    /// Bounds process start, handshake and tool list together.
    pub startup_timeout: Duration,
    /// Bounds the silence of a tool call: progress notifications start it anew.
    pub tool_timeout: Duration,
    /// Bounds a tool call whatever progress it reports.
    pub tool_total_timeout: Duration,
    /// Hard cap on one result, in bytes of JSON.
    pub max_result_bytes: usize,
    /// Calls in flight at once.
    pub max_concurrency: usize,
    pub tools: ToolPolicy,
    /// Hash of command and arguments, or of the address, as they are written; variables are not expanded.
    pub origin: String,
    /// `None`: the server sees and does what this process could.
    pub sandbox: Option<Sandbox>,
    pub(crate) secrets: Secrets,
}

/// Shows nothing that could hold a secret.
impl std::fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerConfig")
            .field("name", &self.name)
            .field("enabled", &self.enabled)
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

/// How a server is reached.
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
    /// Streamable HTTP.
    Http { url: String, bearer_token: Option<String>, headers: BTreeMap<String, String> },
}

/// Which tools are offered and what the operator declares of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolPolicy {
    /// `None`: all.
    pub enabled: Option<Vec<String>>,
    pub disabled: Vec<String>,
    pub default_effect: Effect,
    pub default_approval: ApprovalMode,
    pub effects: BTreeMap<String, Effect>,
    pub approvals: BTreeMap<String, ApprovalMode>,
    /// The server's hints may make rules milder, and not only stricter.
    pub trust_annotations: bool,
    /// Whether anybody may have written what the server says; `None`: the tools' own hints decide.
    pub open_world: Option<bool>,
}

impl ToolPolicy {
    /// Tells why a tool is not offered, if it is not.
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

    /// Returns the tools that the file names, to be compared with those that the server lists.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        let mut names: Vec<&str> = self
            .enabled
            .iter()
            .flatten()
            .chain(self.effects.keys())
            .chain(self.approvals.keys())
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter()
    }
}
