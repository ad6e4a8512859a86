//! The servers of a file, each with its life: started when it is needed, watched, replaced, closed.
//!
//! Enter at [`Pool`]. Invariant: only the holder of its lock changes the state of a server's connection
//! ([`opening::Connection`]), and its display needs no lock ([`view::View`]). Deliberately absent: the content of
//! calls and responses.

mod admission;
mod discovery;
mod monitor;
mod opening;
#[cfg(test)]
mod opening_tests;
mod options;
mod reload;
mod server;
mod servers;
mod view;

pub use options::{DiscoveryProgress, PoolOptions};
pub use reload::Reloaded;
pub use servers::{Absent, Pool};
pub use view::{agent_name, menu_line};
