//! The bundled servers that reach outside or compute, as their clients meet them: the real binary, over its standard streams.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "clippy exempts only the test functions themselves, not what they share"
)]

mod agents;
mod api;
mod api_auth;
mod client;
mod demo;
mod doctor;
mod mail_agent;
mod mail_kills;
mod python;
#[path = "../../crates/mail/tests/mailboxes/support/mod.rs"]
mod support;
mod tap;
mod web_agent;
