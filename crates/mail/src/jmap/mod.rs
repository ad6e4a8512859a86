//! Mail by JMAP (RFC 8620, RFC 8621).
//!
//! The few calls that it takes are written here over HTTP. Drafts are written by the same code as for IMAP, and
//! imported completely, so the program sets their Message-ID and thread from the beginning.

mod client;
mod folders;
mod mailbox;
mod send;
mod wire;

pub use mailbox::JmapMailbox;
