//! Reads `mcp-servers.toml`: which servers there are, how to reach them, what their tools may do.
//!
//! Enter at [`ServersFile`]. Invariant: read values are complete, checked and without variables, and their secrets are
//! registered ([`redact::Secrets`]). Deliberately absent: anything that is started or reached.

mod confinement;
mod expand;
mod file;
mod foreign;
mod http;
mod import;
pub(super) mod redact;
mod resolve;
mod secret;
mod server;
mod table;

use crate::types::{AgentBinding, Knowledge};
use perihelion_settings::config::strict::Error;

pub use confinement::{Origin, Sandbox};
pub use file::{ServersFile, Unusable};
pub use foreign::Format;
pub use http::OAuth;
pub use import::{Imported, LeftOut, import};
use redact::Secrets;
pub use server::{BreakerPolicy, RateLimit, ServerConfig, ToolPolicy, Transport, Warning};
pub use table::{ApprovalMode, Effect, Grant, ToolTable, schema};

type Result<T, E = Error> = std::result::Result<T, E>;
