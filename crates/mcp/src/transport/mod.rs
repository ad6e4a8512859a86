//! Reaches servers: child processes and HTTP, logins, sessions, and requests that always end.
//!
//! Enter at `connect::connect`, which gives a [`session::Session`], and at `session::send`. Invariant: every process is
//! owned and reaped, and every wait is bounded. Deliberately absent: the content of requests, and the meaning of
//! answers.

pub(super) mod connect;
pub(super) mod delivery;
mod http_post;
mod http_session;
mod line_sanitizer;
mod memory;
mod messages;
pub(super) mod oauth;
pub(super) mod open_calls;
mod process;
mod program;
mod sandbox;
pub(super) mod session;
#[cfg(test)]
pub(super) mod silent_tests;
mod stderr;
