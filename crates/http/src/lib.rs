//! The layer between a socket and the routes of an HTTP service; and connections to external endpoints.
//!
//! Enter at [`Server::serve`], the accept loop, at [`Guard`], which rejects requests of other sites' pages, and at
//! [`reach`]. Invariants: a peer that sends its headers too slowly, stops in the middle of a body, does not read its
//! answer, or holds too many connections, including sockets, has a bounded cost. A server that drains ends its streams and then waits a bounded
//! time. Deliberately absent: any route.

mod body;
mod cors;
mod guard;
pub mod reach;
mod server;
mod surrogates;

pub use guard::Guard;
pub use server::{Bounds, Connection, Error, Server};
pub use surrogates::{Lone, paired};
