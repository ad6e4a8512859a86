//! The integration tests, all in one binary.

mod mcp_http;
mod mcp_servers_file;
mod mcp_traps;
