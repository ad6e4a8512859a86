//! Plugs MCP servers in: the servers file, the scan, the sessions, and calls that always end.
//!
//! Enter at [`ToolHost`], with [`Pool`] behind it and [`ServersFile`] before it. The modules are layers, each of which
//! uses only earlier ones: types, configuration, trust, transport, catalog, call, pool. Invariant: every call is
//! bounded in time and size, every child process is owned and reaped. Deliberately absent: any knowledge of agents,
//! graphs or prompts, except the agent's name and its catalog line.

mod call;
mod catalog;
mod configuration;
mod pool;
mod transport;
mod trust;
mod types;

pub use call::form::{FormError, fill_form};
pub use configuration::{
    ApprovalMode, BreakerPolicy, Effect, Format, Grant, Imported, LeftOut, OAuth, Origin,
    RateLimit, Sandbox, ServerConfig, ServersFile, ToolPolicy, ToolTable, Transport, Unusable,
    Warning, import, redact::redact_log, schema,
};
pub use pool::{Absent, DiscoveryProgress, Pool, PoolOptions, Reloaded, agent_name, menu_line};
pub use transport::oauth::{LoggedIn, LoggedOut, Login, Logins};
pub use trust::{Change, Changes, Pins, ServerPin, ToolPin, is_invisible, shown, written_out};
pub use types::{
    AgentBinding, Answers, Asked, CONTEXT_META, CallContext, CallPolicy, CallRound, Error,
    InputSchema, InvalidArguments, Knowledge, Mismatch, Phase, Progress, Question, Reason, Reply,
    ServerInfo, ServerState, ServerStatus, TENANT_META, TaskHandle, ToolAnnotations,
    ToolDefinition, ToolHost, ToolOutcome, UnboundedSchema, UnusableSchema, Via, Wants, accepted,
    declined, digest,
};

/// A directive for log filters: the library logs the codes that come back from a login.
pub const LOG_DIRECTIVE: &str = "rmcp::transport::auth=off";
