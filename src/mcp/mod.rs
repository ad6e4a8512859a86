//! Plugs MCP servers in: the servers file, the scan, the sessions, and calls that always end.
//!
//! Enter at [`ToolHost`], with [`Pool`] behind it and [`ServersFile`] before it. Invariant: every call is
//! bounded in time and size, every child process is owned and reaped. Deliberately absent: any knowledge
//! of agents, graphs or prompts, but for the agent's name and its menu line.

mod breaker;
mod cache;
mod call_round;
mod connect;
mod definitions;
mod elicitation;
mod exchange;
mod failure;
mod form;
mod gate;
mod hidden;
mod http;
mod http_session;
mod line_sanitizer;
mod list_changes;
mod listing;
mod memory;
mod menu;
mod monitor;
mod oauth;
mod opening;
mod outcome;
mod phase;
mod pins;
mod pool;
mod process;
mod process_mark;
mod progress;
mod quarantine;
mod rate;
mod redact;
mod reload;
mod request;
mod sandbox;
mod schema;
mod schema_cost;
mod server;
mod server_login;
mod servers_file;
mod session;
mod stderr;
mod task;
mod types;

pub use exchange::{
    Answers, Asked, CallRound, Question, Reply, TaskHandle, Wants, accepted, declined,
};
pub use form::fill_form;
pub use gate::Gate;
pub use hidden::{is_invisible, written_out};
pub use menu::{agent_name, menu_line};
pub use oauth::{LoggedIn, LoggedOut, Login, Logins};
pub use phase::{Phase, ServerState};
pub use pins::{Change, Changes, Pins, ServerPin, ToolPin, digest};
pub use pool::{Looked, Pool, PoolOptions};
pub use redact::redact_log;
pub use reload::Reloaded;
pub use sandbox::Sandbox;
pub use schema::validate_arguments;
pub use servers_file::{
    ApprovalMode, BreakerPolicy, Effect, Format, Grant, Imported, LeftOut, OAuth, Origin,
    RateLimit, ServerConfig, ServersFile, ToolPolicy, Transport, Unusable, Warning, import, schema,
};
pub use types::{
    AgentBinding, CallContext, Error, Knowledge, Progress, ServerInfo, ServerStatus, TENANT_META,
    ToolAnnotations, ToolDefinition, ToolHost, ToolOutcome, Via,
};

/// A directive for log filters: the library logs the codes that come back from a login.
pub const LOG_DIRECTIVE: &str = "rmcp::transport::auth=off";

/// How long a tool list is fresh if neither the operator nor the server says.
const UNSAID_TTL: std::time::Duration = std::time::Duration::from_secs(86_400);
