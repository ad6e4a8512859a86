//! Everything served over HTTP: the Agent Server API, OpenAI, A2A, MCP, the web UI, Jaeger's read API, and metrics.
//!
//! Enter at [`serve::router`], which has all routes of `perihelion serve`, or at the router of one API. Invariant: a
//! router does not know its callers, so one without authentication is behind a guard. Deliberately absent: stores and
//! projections, which only the runtime and the service know.

mod a2a;
pub mod agent_server;
mod auth;
mod callbacks;
mod conversation;
pub mod deliver;
mod event_stream;
mod hidden;
mod http;
pub mod jaeger;
mod mcp;
pub mod metrics;
pub mod openai;
mod openapi;
mod own;
mod page;
mod parts;
mod questions;
mod refused_socket;
mod request_fields;
pub mod serve;
mod team;

pub use serve::loopback_only;
