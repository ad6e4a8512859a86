//! Mail by IMAP and SMTP.

mod connection;
mod folders;
mod mailbox;
mod send;
mod smtp;

pub use mailbox::ImapMailbox;
