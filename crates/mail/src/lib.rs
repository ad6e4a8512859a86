//! A mailbox for models: searched and read by IMAP, answered in the thread, sent once by SMTP.
//!
//! Enter at [`Mailbox::open`]. A message is named by its Message-ID, which a draft has from the beginning. Invariant: a draft is sent at
//! most once: its Message-ID is looked for in Sent before it is sent, it is marked before it goes out, and a marked one that is not in
//! Sent is an error that a person decides. Deliberately absent: deleting and moving anybody's mail.

mod account;
mod compose;
mod connection;
mod error;
mod folders;
mod mailbox;
mod message;
mod query;
mod send;

pub use account::{Account, Endpoint, Security};
pub use compose::{Attachment, Compose};
pub use error::Error;
pub use mailbox::Mailbox;
pub use message::{Message, Shown, Summary};
pub use send::{Sent, SentState};
