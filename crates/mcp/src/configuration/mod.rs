//! Reads `mcp-servers.toml`: which servers there are, how to reach them, what their tools may do.
//!
//! Enter at [`ServersFile`]. Invariant: what is read is whole, checked and without a variable left in it, and its
//! secrets are known as such ([`redact::Secrets`]). Deliberately absent: anything that is started or reached.

mod confinement;
mod entry_location;
mod expand;
mod file;
mod foreign;
mod http;
mod import;
mod left_out;
mod oauth;
pub(super) mod redact;
mod resolve;
mod sandbox;
mod secret;
mod server;
mod table;

use crate::types::{AgentBinding, Knowledge};
use perihelion_settings::config::strict::Error;

pub use confinement::Origin;
pub use file::ServersFile;
pub use foreign::Format;
pub use import::{Imported, LeftOut, import};
pub use left_out::Unusable;
pub use oauth::OAuth;
use redact::Secrets;
pub use sandbox::Sandbox;
pub use server::{BreakerPolicy, RateLimit, ServerConfig, ToolPolicy, Transport, Warning};
pub use table::{ApprovalMode, Effect, Grant, schema};
