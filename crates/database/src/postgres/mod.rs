//! One Postgres server, shared by any number of processes.
//!
//! Enter at [`Connections`]. Invariant: each wait for the server has a bound, and a connection that broke is not used again.
//! Deliberately absent: `synchronous_commit` is never touched, so the server's own setting decides.

mod connections;

pub use connections::{Answer, Borrowed, Connections, SILENCE, code, is_broken, within};
