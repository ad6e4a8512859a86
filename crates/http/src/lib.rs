//! The edge of an HTTP service, what stands between a socket and the routes; and how an endpoint of others is reached.
//!
//! Enter at [`Server::serve`], the accept loop, at [`Guard`], which refuses what web pages of strangers send, and at [`reach`].
//! Invariants: a peer that sends its headers too slowly, stops in the middle of a body, or holds too many connections, sockets among them, costs a bounded amount;
//! a server that drains ends its streams and then waits a bounded time. Deliberately absent: any route.

mod body;
mod cors;
mod guard;
pub mod reach;
mod server;
pub mod sse;

pub use cors::Exposed;
pub use guard::{Guard, Origins};
pub use server::{Bounds, Connection, Error, Server};
