//! The integration tests, all in one binary.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy exempts only the test functions themselves, not what they share"
)]

mod bundled_servers;
mod cli;
mod dispatch;
mod examples;
mod mcp_dialects;
mod mcp_excess;
mod mcp_http;
mod mcp_import;
mod mcp_life;
mod mcp_memory;
mod mcp_oauth;
mod mcp_pins;
mod mcp_reload;
mod mcp_sandbox;
mod mcp_served;
mod mcp_servers_file;
mod mcp_traps;
mod mcp_versions;
mod model;
mod own_nodes;
mod parallel_tasks;
mod rolling_upgrade;
mod runner;
mod store_suite;
mod support;
mod swarm;
mod telemetry;
mod tidy;
