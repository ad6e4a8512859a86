//! Mail by JMAP (RFC 8620, RFC 8621).
//!
//! The few calls that it takes are written here over HTTP. What is drafted is written by the same code as for IMAP, and imported whole, so
//! that its Message-ID and its thread are ours from the beginning.

mod client;
mod folders;
mod mailbox;
mod send;
mod wire;

pub use mailbox::JmapMailbox;
