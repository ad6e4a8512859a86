//! The servers of a file, each with its life: started when it is needed, watched, replaced, closed.
//!
//! Enter at [`Pool`]. Invariant: a server's connection is moved from state to state by the one who holds its lock
//! ([`connection::Connection`]), and what is shown of it needs no lock ([`view::View`]). Deliberately absent: what a call
//! sends and what comes back.

mod admission;
mod breaker;
mod connection;
mod looking;
mod monitor;
mod opening;
mod reload;
mod server;
mod servers;
mod view;

pub use reload::Reloaded;
pub use servers::{Absent, Looked, Pool, PoolOptions};
pub use view::{agent_name, menu_line};
