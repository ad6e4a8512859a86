//! Plugs MCP servers in: the servers file, the scan, the sessions, and calls that always end.
//!
//! Enter at [`ToolHost`]. Invariant: every call is bounded in time and size, every child process is
//! owned and reaped. Deliberately absent: any knowledge of agents, graphs or prompts.

mod types;

pub use types::{
    CallContext, Error, ServerInfo, ServerStatus, ToolAnnotations, ToolDefinition, ToolHost,
    ToolOutcome,
};
