//! Mail by IMAP and SMTP.

mod connection;
mod folders;
mod mailbox;
mod send;
mod session;
mod smtp;

pub use mailbox::ImapMailbox;
