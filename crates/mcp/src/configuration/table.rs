//! The shape of one `[mcp_servers.<name>]` table as it is written, and the JSON Schema made of it.

use std::collections::{BTreeMap, HashMap};

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Deserialize, Serialize};
use serde_spanned::Spanned;

/// The whole file; the spans keep the order in which the tables were written.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "mcp-servers.toml", description = "The MCP servers of Perihelion.")]
pub(super) struct File {
    /// Files of other programs whose servers are used directly, such as `.mcp.json` of Claude. Relative paths start at
    /// this file's directory.
    #[serde(default)]
    pub import: Vec<String>,
    /// One table per server. Its agent is `mcp_agent_<name>`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Table>")]
    pub mcp_servers: HashMap<String, Spanned<Table>>,
}

/// The part of a Codex configuration that is ours; its other keys are Codex's own business.
#[derive(Deserialize)]
pub(super) struct CodexFile {
    #[serde(default)]
    pub mcp_servers: HashMap<String, Table>,
}

// The first two groups and most of the third are Codex's keys, so that a table pastes in unchanged.
/// One MCP server. Set either `command` or `url`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    // A server started here, spoken to over stdin and stdout.
    /// Program to start. `perihelion` is this program itself. `${VAR}` and `${VAR:-default}` are expanded.
    pub command: Option<String>,
    /// Arguments of the program. `${VAR}` and `${VAR:-default}` are expanded.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment of the program. Write secrets as `${VAR}`.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Environment variables to pass to the program if they are set.
    #[serde(default)]
    pub env_vars: Vec<String>,
    /// Working directory of the program. Defaults to the current directory.
    pub cwd: Option<String>,

    // A server elsewhere, spoken to over streamable HTTP.
    /// URL of a running server, reached over streamable HTTP.
    pub url: Option<String>,
    /// Environment variable with the bearer token.
    pub bearer_token_env_var: Option<String>,
    /// Headers of every request. Write secrets as `${VAR}`.
    #[serde(default)]
    pub http_headers: BTreeMap<String, String>,
    /// Headers with values from environment variables: header name to variable name.
    #[serde(default)]
    pub env_http_headers: BTreeMap<String, String>,
    /// OAuth scopes to request. Defaults to the scopes that the server requests.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// OAuth client. By default, Perihelion registers itself with the authorization server.
    pub oauth: Option<OAuthTable>,

    // Both.
    /// Seconds for process start, handshake and tool list together. Defaults to 20.
    pub startup_timeout_sec: Option<f64>,
    /// Seconds without a message during a call. Progress restarts the time. Defaults to 60.
    pub tool_timeout_sec: Option<f64>,
    /// Whether the server is used. Defaults to true.
    pub enabled: Option<bool>,
    /// Whether Perihelion refuses to start without this server.
    #[serde(default)]
    pub required: bool,
    /// Tools to offer. Defaults to all.
    pub enabled_tools: Option<Vec<String>>,
    /// Tools to leave out.
    #[serde(default)]
    pub disabled_tools: Vec<String>,
    /// `false`: the same as `max_concurrent_calls = 1`.
    pub supports_parallel_tool_calls: Option<bool>,
    /// Approval mode of tools without their own `approval_mode`.
    pub default_tools_approval_mode: Option<ApprovalMode>,
    /// Settings of individual tools.
    #[serde(default)]
    pub tools: BTreeMap<String, ToolTable>,

    // Ours.
    /// Kind of the server's agent. Defaults to the kind made for a bundled server, otherwise to `tools`.
    pub agent: Option<String>,
    /// Tools for the roles of the kind: role to tool.
    #[serde(default)]
    pub agent_tools: BTreeMap<String, String>,
    /// YAML file next to this one with the analyst's metrics and verified queries.
    pub knowledge: Option<String>,
    /// Description of the agent in the catalog. Defaults to the server's own.
    pub description: Option<String>,
    /// Tools with `effect = "idempotent"`.
    #[serde(default)]
    pub repeatable: Vec<String>,
    /// Effect of tools without their own `effect`. Defaults to `write`.
    pub default_tools_effect: Option<Effect>,
    /// Seconds of a whole call, even with progress. Defaults to ten times `tool_timeout_sec`.
    pub tool_total_timeout_sec: Option<f64>,
    /// Seconds of a call that the server runs as a task. Defaults to 3600.
    pub task_timeout_sec: Option<f64>,
    /// Maximum bytes of a result. A larger result is an error. Defaults to 8388608.
    pub max_result_bytes: Option<usize>,
    /// Megabytes of memory per process, and for all processes together in a delegated cgroup. Unlimited by default.
    pub memory_mb: Option<u64>,
    /// Maximum number of concurrent calls. Further calls wait. Defaults to 8.
    #[serde(alias = "max_concurrency")]
    pub max_concurrent_calls: Option<usize>,
    /// Calls per second, minute or hour, such as `60/min`. Further calls wait. Unlimited by default.
    pub rate_limit: Option<String>,
    /// Seconds without a call after which the server is stopped until the next call. 0 disables this. Defaults to 600.
    pub idle_timeout_sec: Option<f64>,
    /// Consecutive failures after which calls are rejected for a while. Defaults to 5.
    pub breaker_failures: Option<usize>,
    /// Seconds during which calls are rejected, before one is tried again. Defaults to 30.
    pub breaker_cooldown_sec: Option<f64>,
    /// Seconds during which a tool list is fresh. Defaults to the server's `ttlMs`, otherwise to 86400.
    pub definitions_ttl_sec: Option<f64>,
    /// Whether the server's hints (`readOnlyHint`, `idempotentHint`) can also relax rules.
    #[serde(default)]
    pub trust_annotations: bool,
    /// Whether anyone can write the server's content. By default, the hint of each tool decides.
    pub open_world: Option<bool>,
    /// Confines the server with bubblewrap to the listed paths. Linux only.
    pub sandbox: Option<SandboxTable>,
}

/// Access of a confined server. An empty table gives access only to the system's programs.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SandboxTable {
    /// Readable paths. Relative paths start at the server's working directory.
    pub read_only: Vec<String>,
    /// Readable and writable paths.
    pub writable: Vec<String>,
    /// Whether the server has network access. Defaults to false.
    pub network: bool,
}

/// How Perihelion gets a token for the server.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OAuthTable {
    /// Client ID registered with the authorization server.
    pub client_id: Option<String>,
    /// Environment variable with the client secret.
    pub client_secret_env_var: Option<String>,
    /// The only authorization server that receives the secret. Defaults to the first one that the server names.
    pub issuer: Option<String>,
    /// HTTPS URL of a client metadata document, used as the client ID if the authorization server supports it.
    pub client_metadata_url: Option<String>,
    /// Port of 127.0.0.1 for the redirect of the browser. Defaults to a free port.
    pub callback_port: Option<u16>,
    /// Whether a person or the program logs in. Defaults to a person.
    pub grant: Grant,
}

/// How a token is obtained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// A person logs in with a browser: `perihelion agents login`.
    #[default]
    AuthorizationCode,
    /// Perihelion logs in with `client_id` and its secret.
    ClientCredentials,
}

impl Table {
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }
}

/// `[mcp_servers.<name>.tools.<tool>]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolTable {
    /// Whether a person is asked before a call.
    pub approval_mode: Option<ApprovalMode>,
    /// The effect of a call.
    pub effect: Option<Effect>,
    /// Seconds until a request for approval expires. Defaults to the limits in the settings.
    pub approval_timeout_sec: Option<std::num::NonZeroU32>,
}

/// Whether a person is asked before a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    /// A call needs no approval, unless another policy requires it.
    #[default]
    Auto,
    /// A person approves each call.
    Prompt,
    /// The operator approved every call in advance.
    Approve,
}

/// The effect of a call, as the operator declares it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Changes nothing; may be repeated.
    ReadOnly,
    /// The same however often it runs; may be repeated.
    Idempotent,
    /// Each call changes something; never repeated without a person's decision.
    #[default]
    Write,
}

/// Returns the JSON Schema of the servers file, in the draft that editors of TOML understand best.
pub fn schema() -> schemars::Schema {
    SchemaSettings::draft07().into_generator().into_root_schema_for::<File>()
}
