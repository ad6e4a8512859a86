//! A mailbox for models: searched and read by IMAP or JMAP, answered in the thread, sent once.
//!
//! Enter at [`Mailbox::open`] or [`Mailbox::open_jmap`]. A message is named by its Message-ID, which a draft has from
//! the beginning. Invariant: a draft is sent at most once. Its Message-ID is searched in Sent first, it is marked
//! before it is sent, and a marked one that is not in Sent is an error that a person decides. Deliberately absent:
//! deleting and moving mail.

mod account;
mod compose;
mod error;
mod imap;
mod jmap;
mod mailbox;
mod message;
#[cfg(test)]
mod mime_tests;
mod query;
mod sent;
mod written;

pub use account::{Account, Endpoint, JmapServer, Security, Servers};
pub use compose::{Attachment, Compose};
pub use error::Error;
pub(crate) use error::Result;
pub use mailbox::Mailbox;
pub use message::{Message, Messages, Shown, Summary};
pub use sent::{Sent, SentState};
