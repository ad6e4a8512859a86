//! Writes the drafts that both protocols keep.

use crate::compose::{self, Compose, Written};
use crate::message::{self, Message};
use crate::{Account, Error, Result};

/// The content of a draft; `message` is the ID of the message that it answers.
#[derive(Clone, Copy)]
pub enum Draft<'a> {
    New(&'a Compose),
    Answer { message: &'a str, text: &'a str },
    Forward { message: &'a str, to: &'a [String], text: &'a str },
}

impl Draft<'_> {
    pub fn follows(&self) -> Option<&str> {
        match self {
            Self::New(_) => None,
            Self::Answer { message, .. } | Self::Forward { message, .. } => Some(message),
        }
    }

    /// Writes it; `followed` is the message that it follows, with its bytes, and `unique` names it in all calls that are
    /// about it.
    pub fn write(
        &self,
        account: &Account,
        followed: Option<&(Message, Vec<u8>)>,
        unique: &str,
    ) -> Result<Written> {
        let id = compose::own_id(account, unique)?;
        match (self, followed) {
            (Self::New(compose), _) => compose::write(account, compose, id),
            (Self::Answer { text, .. }, Some((message, _))) => {
                compose::write(account, &compose::answer(account, message, text)?, id)
            }
            (Self::Forward { to, text, .. }, Some((message, bytes))) => {
                let forward = compose::forward(message, message::parts(bytes), to, text);
                compose::write(account, &forward, id)
            }
            (Self::Answer { message, .. } | Self::Forward { message, .. }, None) => {
                Err(Error::NoMessage((*message).to_owned()))
            }
        }
    }
}
