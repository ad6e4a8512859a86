//! Reads `mcp-servers.toml`: which servers there are, how to reach them, what their tools may do.

mod confinement;
mod expand;
mod foreign;
mod http;
mod import;
mod left_out;
mod oauth;
mod place;
mod resolve;
mod secret;
mod table;

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{AgentBinding, Knowledge, redact::Secrets, sandbox::Sandbox};
use crate::config::strict::{self, Error};

pub use confinement::Origin;
pub use foreign::Format;
pub use import::{Imported, LeftOut, import};
pub use left_out::Unusable;
pub use oauth::OAuth;
pub use table::{ApprovalMode, Effect, Grant, schema};

/// The servers file, checked and with every variable expanded.
#[derive(Clone, Debug, Default)]
pub struct ServersFile {
    /// All servers, the disabled ones too, in the order in which they are written, imported ones last.
    pub servers: Vec<ServerConfig>,
    /// Servers that cannot be used as things stand; the others can.
    pub unusable: Vec<Unusable>,
    /// What was understood but has no effect or should not stand there, for the operator's eyes.
    pub warnings: Vec<Warning>,
    /// The files that it was read from: itself and what it imports.
    pub sources: Vec<PathBuf>,
}

/// Something about a server's table that the operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub server: String,
    /// One sentence; ends with the key it is about.
    pub text: String,
}

impl ServersFile {
    /// Reads and checks the file at `path` and those it imports; `env` looks up environment variables.
    ///
    /// # Errors
    /// [`Error::Read`] when the file cannot be read; otherwise as [`ServersFile::parse`].
    pub fn load(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, Error> {
        Self::parse(path, &read(path)?, env)
    }

    /// Checks the text of a servers file; `path` names it in errors, and is where imports start.
    ///
    /// # Errors
    /// [`Error::Parse`] with line and column for broken TOML, unknown keys and values that cannot be used;
    /// [`Error::Read`] and [`Error::Value`] for a file that is imported.
    pub fn parse(
        path: &Path,
        text: &str,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let located = |error| place::locate(path, text, error);
        let file: table::File = strict::parse(path, text)?;
        let mut tables: Vec<_> = file.mcp_servers.into_iter().collect();
        tables.sort_by_key(|(_, table)| table.span().start);
        let mut read = Self { sources: vec![path.to_owned()], ..Self::default() };
        for (name, table) in tables {
            let place = resolve::Place { path, section: "mcp_servers", server: &name };
            read.add(&place, table.into_inner(), env).map_err(located)?;
        }
        for from in &file.import {
            read.import(path, from, env).map_err(located)?;
        }
        Ok(read)
    }

    fn add(
        &mut self,
        place: &resolve::Place<'_>,
        table: table::Table,
        env: expand::Environment<'_>,
    ) -> Result<(), Error> {
        let is_taken = self.unusable.iter().any(|one| one.server == place.server);
        if is_taken || self.get(place.server).is_some() {
            let message = "there is a server of this name already; rename or remove one of the two";
            return Err(place.error("", message));
        }
        let missing = left_out::missing(&table, env);
        if !missing.is_empty() {
            let reason = left_out::reason(place, &missing);
            let server = place.server.to_owned();
            self.unusable.push(Unusable { server, reason, required: table.required });
            return Ok(());
        }
        let server = resolve::server(place, table, env, &mut self.warnings)?;
        self.servers.push(server);
        Ok(())
    }

    /// Adds the servers of another program's file as they stand there now.
    fn import(
        &mut self,
        path: &Path,
        from: &str,
        env: expand::Environment<'_>,
    ) -> Result<(), Error> {
        let refuse = |message: String| {
            let (path, key) = (path.to_owned(), "import".to_owned());
            Error::Value { path, key, message }
        };
        let written = expand::expand(from, env, &mut Secrets::default()).map_err(refuse)?;
        let source = path.parent().unwrap_or(Path::new("")).join(written);
        let text = read(&source)?;
        let format = foreign::detect(&source, &text).ok_or_else(|| {
            refuse(format!("there are no MCP servers in a form that is known here: {from}"))
        })?;
        self.sources.push(source.clone());
        if format == Format::Codex {
            let file: table::CodexFile = strict::parse(&source, &text)?;
            // Their order is of no importance, but must be the same each time.
            let tables: BTreeMap<_, _> = file.mcp_servers.into_iter().collect();
            for (name, table) in tables {
                let place = resolve::Place { path: &source, section: "mcp_servers", server: &name };
                self.add(&place, table, env)?;
            }
            return Ok(());
        }
        let section = if format == Format::VsCode { "servers" } else { "mcpServers" };
        for server in foreign::read(&source, &text, format)? {
            let name = server.name.clone();
            let notes = server.notes.iter().map(|note| {
                let text = format!("{note} (in {})", source.display());
                Warning { server: name.clone(), text }
            });
            self.warnings.extend(notes);
            if let Some(reason) = server.unusable {
                let reason = format!("{reason} (in {})", source.display());
                self.unusable.push(Unusable { server: name, reason, required: false });
                continue;
            }
            let place = resolve::Place { path: &source, section, server: &name };
            self.add(&place, server.into_table(), env)?;
        }
        Ok(())
    }

    /// Returns the server of that name.
    pub fn get(&self, name: &str) -> Option<&ServerConfig> {
        self.servers.iter().find(|server| server.name == name)
    }
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
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
    /// Calls in flight at once.
    pub max_concurrent_calls: usize,
    /// Calls over time; `None`: not bounded.
    pub rate_limit: Option<RateLimit>,
    /// Time without a call after which the server is stopped; `None`: never.
    pub idle_timeout: Option<Duration>,
    pub breaker: BreakerPolicy,
    /// How long a tool list counts as fresh, whatever the server says.
    pub definitions_ttl: Option<Duration>,
    pub tools: ToolPolicy,
    /// How the server's agent works.
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
    /// Returns how many calls of one answer are sent at a time: no more than are let through without waiting.
    pub(crate) fn calls_at_once(&self) -> usize {
        let burst = self.rate_limit.map_or(u32::MAX, |limit| limit.calls.get());
        self.max_concurrent_calls.min(usize::try_from(burst).unwrap_or(usize::MAX))
    }
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

/// So many calls in so long.
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
    Http {
        url: String,
        bearer_token: Option<String>,
        headers: BTreeMap<String, String>,
        /// How a token is got; `None`: `bearer_token` or a header is one.
        oauth: Option<OAuth>,
    },
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
    /// Seconds for which a call's approval can be given, by tool.
    pub approval_timeouts: BTreeMap<String, u32>,
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
            .chain(self.approval_timeouts.keys())
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter()
    }
}
