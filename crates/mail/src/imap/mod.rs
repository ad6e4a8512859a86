//! Mail by IMAP and SMTP.

mod connection;
mod folders;
mod mailbox;
mod send;
mod session;
mod smtp;
#[cfg(test)]
mod tests;
mod utf7;

pub use mailbox::ImapMailbox;
