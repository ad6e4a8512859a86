//! Plugs MCP servers in: the servers file, the scan, the sessions, and calls that always end.
//!
//! Enter at [`ToolHost`], with [`Pool`] behind it and [`ServersFile`] before it. Invariant: every call is
//! bounded in time and size, every child process is owned and reaped. Deliberately absent: any knowledge
//! of agents, graphs or prompts, but for the agent's name and its menu line.

mod connect;
mod failure;
mod gate;
mod hidden;
mod http;
mod http_session;
mod listing;
mod mark;
mod menu;
mod outcome;
mod pins;
mod pool;
mod process;
mod progress;
mod redact;
mod request;
mod sandbox;
mod schema;
mod server;
mod servers_file;
mod session;
mod stderr;
mod types;

pub use menu::{agent_name, menu_line};
pub use pins::{Change, Changes, Pins, ServerPin, ToolPin, digest};
pub use pool::{Pool, PoolOptions};
pub use sandbox::Sandbox;
pub use schema::validate_arguments;
pub use servers_file::{ApprovalMode, Effect, ServerConfig, ServersFile, ToolPolicy, Transport};
pub use types::{
    CallContext, Error, ServerInfo, ServerStatus, ToolAnnotations, ToolDefinition, ToolHost,
    ToolOutcome, Via,
};
