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
    /// Further files whose servers are used as they stand: `.mcp.json` of Claude, `mcp.json` of VS Code.
    /// Relative paths start at this file's directory.
    #[serde(default)]
    pub import: Vec<String>,
    /// One server each; the agent made of it is called `mcp_agent_<name>`.
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
/// One MCP server: give either `command` or `url`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    // A server started here, spoken to over stdin and stdout.
    /// Program to start; `perihelion` means this program itself. `${VAR}` and `${VAR:-default}` are expanded.
    pub command: Option<String>,
    /// Arguments of the program. `${VAR}` and `${VAR:-default}` are expanded.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment of the program; write secrets as `${VAR}`.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Variables that are passed on to the program where they are set.
    #[serde(default)]
    pub env_vars: Vec<String>,
    /// Directory in which the program starts; by default the current one.
    pub cwd: Option<String>,

    // A server elsewhere, spoken to over streamable HTTP.
    /// Address of a running server, spoken to over streamable HTTP.
    pub url: Option<String>,
    /// Variable that holds the bearer token.
    pub bearer_token_env_var: Option<String>,
    /// Headers of every request; write secrets as `${VAR}`.
    #[serde(default)]
    pub http_headers: BTreeMap<String, String>,
    /// Headers whose values stand in variables: header to variable.
    #[serde(default)]
    pub env_http_headers: BTreeMap<String, String>,
    /// OAuth scopes that are asked for; by default those that the server wants.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// How this program is known to the server's authorization server; by default it makes itself known.
    pub oauth: Option<OAuthTable>,

    // Both.
    /// Seconds for process start, handshake and tool list together; by default 20.
    pub startup_timeout_sec: Option<f64>,
    /// Seconds of silence in a call; progress starts them again; by default 60.
    pub tool_timeout_sec: Option<f64>,
    /// Whether the server is used.
    pub enabled: Option<bool>,
    /// Whether the program refuses to start without this server.
    #[serde(default)]
    pub required: bool,
    /// The only tools that are offered; by default all.
    pub enabled_tools: Option<Vec<String>>,
    /// Tools that are not offered.
    #[serde(default)]
    pub disabled_tools: Vec<String>,
    /// `false`: the same as `max_concurrent_calls = 1`.
    pub supports_parallel_tool_calls: Option<bool>,
    /// Whether a person is asked before a call, where a tool says nothing else.
    pub default_tools_approval_mode: Option<ApprovalMode>,
    /// What holds for single tools.
    #[serde(default)]
    pub tools: BTreeMap<String, ToolTable>,

    // Ours.
    /// How the server's agent works; by default the natural kind of a bundled server, else `tools`.
    pub agent: Option<String>,
    /// Which tool plays which role for that kind: role to tool.
    #[serde(default)]
    pub agent_tools: BTreeMap<String, String>,
    /// A YAML file beside this one with what is known of what the server holds; the analyst's metrics and verified queries.
    pub knowledge: Option<String>,
    /// The agent's words in the menu; by default the server's own.
    pub description: Option<String>,
    /// Short for `effect = "idempotent"` of each.
    #[serde(default)]
    pub repeatable: Vec<String>,
    /// What a call leaves behind, where a tool says nothing else; by default `write`.
    pub default_tools_effect: Option<Effect>,
    /// Seconds of a call, whatever progress it reports; by default ten times `tool_timeout_sec`.
    pub tool_total_timeout_sec: Option<f64>,
    /// Seconds of a call that the server carries out as a task; by default 3600.
    pub task_timeout_sec: Option<f64>,
    /// Bytes of a result above which it becomes an error; by default 8388608.
    pub max_result_bytes: Option<usize>,
    /// Megabytes of memory that each process of the program may use, and all together where this program may make
    /// a cgroup; by default not bounded.
    pub memory_mb: Option<u64>,
    /// Calls at once; further ones wait; by default 8.
    #[serde(alias = "max_concurrency")]
    pub max_concurrent_calls: Option<usize>,
    /// Calls per second, minute or hour, such as `60/min`; further ones wait; by default not bounded.
    pub rate_limit: Option<String>,
    /// Seconds without a call after which the server is stopped until the next one; 0: never; by default 600.
    pub idle_timeout_sec: Option<f64>,
    /// Failures in a row after which calls are refused for a while; by default 5.
    pub breaker_failures: Option<usize>,
    /// Seconds for which calls are refused then, before one is tried again; by default 30.
    pub breaker_cooldown_sec: Option<f64>,
    /// Seconds for which a tool list counts as fresh; by default what the server says (`ttlMs`), else 86400.
    pub definitions_ttl_sec: Option<f64>,
    /// Whether the server's own hints may make rules milder (`readOnlyHint`, `idempotentHint`).
    #[serde(default)]
    pub trust_annotations: bool,
    /// Whether anybody may have written what the server says; by default what each tool says of itself.
    pub open_world: Option<bool>,
    /// Confines the server with bubblewrap: what is not listed does not exist for it.
    pub sandbox: Option<SandboxTable>,
}

/// What a confined server may see; an empty table lets it see the system's programs and nothing else.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SandboxTable {
    /// Paths that it may read; relative ones start where the server does.
    pub read_only: Vec<String>,
    /// Paths that it may read and write.
    pub writable: Vec<String>,
    /// Whether it has the network of this machine; otherwise it has none.
    pub network: bool,
}

/// How this program gets a token for the server.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OAuthTable {
    /// Identifier under which the authorization server knows this program already.
    pub client_id: Option<String>,
    /// Variable that holds the secret that goes with `client_id`.
    pub client_secret_env_var: Option<String>,
    /// The one authorization server that may see the secret and give out tokens; by default the one that the server names
    /// when it is first logged in to.
    pub issuer: Option<String>,
    /// HTTPS address of a client metadata document, which is the identifier where the authorization server takes
    /// such ones.
    pub client_metadata_url: Option<String>,
    /// Port of 127.0.0.1 to which the browser comes back; by default a free one.
    pub callback_port: Option<u16>,
    /// Whether a person logs in; by default so.
    pub grant: Grant,
}

/// How a token is got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// A person logs in with a browser: `perihelion agents login`.
    #[default]
    AuthorizationCode,
    /// This program gets it by itself, with `client_id` and its secret.
    ClientCredentials,
}

impl Table {
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }
}

/// `[mcp_servers.<name>.tools.<tool>]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolTable {
    /// Whether a person is asked before a call.
    pub approval_mode: Option<ApprovalMode>,
    /// What a call leaves behind.
    pub effect: Option<Effect>,
    /// Seconds for which a request to approve a call of it can be answered; by default as the settings say.
    pub approval_timeout_sec: Option<std::num::NonZeroU32>,
}

/// Whether a person is asked before a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    /// Nobody is asked, unless a policy elsewhere says so.
    #[default]
    Auto,
    /// A person approves each call.
    Prompt,
    /// The operator approved every call in advance.
    Approve,
}

/// What a call leaves behind, as the operator declares it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing; may be repeated.
    ReadOnly,
    /// The same however often it runs; may be repeated.
    Idempotent,
    /// Something more with every call; never repeated without a person's word.
    #[default]
    Write,
}

/// Returns the JSON Schema of the servers file, in the draft that editors of TOML understand best.
pub fn schema() -> schemars::Schema {
    SchemaSettings::draft07().into_generator().into_root_schema_for::<File>()
}
