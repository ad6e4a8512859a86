//! The shape of one `[mcp_servers.<name>]` table as it is written.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use toml::Spanned;

/// The whole file; the spans keep the order in which the tables were written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub mcp_servers: HashMap<String, Spanned<Table>>,
}

/// One server. The first two groups and most of the third are Codex's keys, so that a table pastes in unchanged.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    // A server started here, spoken to over stdin and stdout.
    pub command: Option<String>,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub env_vars: Vec<String>,
    pub cwd: Option<String>,

    // A server elsewhere, spoken to over streamable HTTP.
    pub url: Option<String>,
    pub bearer_token_env_var: Option<String>,
    #[serde(default)]
    pub http_headers: BTreeMap<String, String>,
    #[serde(default)]
    pub env_http_headers: BTreeMap<String, String>,
    #[serde(default)]
    pub scopes: Vec<String>,
    pub oauth: Option<toml::Value>,

    // Both.
    pub startup_timeout_sec: Option<f64>,
    pub tool_timeout_sec: Option<f64>,
    #[serde(default = "yes")]
    pub enabled: bool,
    #[serde(default)]
    pub required: bool,
    pub enabled_tools: Option<Vec<String>>,
    #[serde(default)]
    pub disabled_tools: Vec<String>,
    pub supports_parallel_tool_calls: Option<bool>,
    pub default_tools_approval_mode: Option<ApprovalMode>,
    #[serde(default)]
    pub tools: BTreeMap<String, ToolTable>,

    // Ours.
    pub description: Option<String>,
    #[serde(default)]
    pub repeatable: Vec<String>,
    pub default_tools_effect: Option<Effect>,
    pub tool_total_timeout_sec: Option<f64>,
    pub max_result_bytes: Option<usize>,
    pub max_concurrency: Option<usize>,
    #[serde(default)]
    pub trust_annotations: bool,
    pub open_world: Option<bool>,
    pub sandbox: Option<SandboxTable>,
}

/// `[mcp_servers.<name>.sandbox]`; an empty one lets the server see the system's programs and nothing else.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SandboxTable {
    pub read_only: Vec<String>,
    pub writable: Vec<String>,
    pub network: bool,
}

/// `[mcp_servers.<name>.tools.<tool>]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolTable {
    pub approval_mode: Option<ApprovalMode>,
    pub effect: Option<Effect>,
}

/// Whether a person is asked before a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
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

fn yes() -> bool {
    true
}
