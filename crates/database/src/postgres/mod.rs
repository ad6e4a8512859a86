//! One Postgres server, shared by any number of processes.
//!
//! Enter at [`Connections`]; for another kind of connection, at [`Server`]. Invariant: each wait for the server has a
//! bound, and a connection that broke is not used again. Deliberately absent: `synchronous_commit` is never touched, so
//! the server's own setting decides.

mod connections;
mod product;
mod server;

pub use connections::{Answer, Borrowed, Connections, code, is_broken};
pub use server::{Listener, SILENCE, Server};
