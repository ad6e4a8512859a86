//! Writes the drafts that both protocols keep: a new message, an answer, a forward.

use crate::compose::{self, Compose, Follows, Written};
use crate::message::{self, Message};
use crate::{Account, Error};

/// Writes a message of its own; `unique` names it in all calls that are about it.
pub fn new(account: &Account, compose: &Compose, unique: &str) -> Result<Written, Error> {
    write(account, compose, Follows::Nothing, unique)
}

/// Writes an answer to a message.
pub fn answer(
    account: &Account,
    answered: &Message,
    text: &str,
    unique: &str,
) -> Result<Written, Error> {
    let compose = compose::answer(account, answered, text)?;
    write(account, &compose, Follows::Answer(answered), unique)
}

/// Writes a message that hands another one on, with what is attached to the other's bytes.
pub fn forward(
    account: &Account,
    (message, bytes): (&Message, &[u8]),
    to: &[String],
    text: &str,
    unique: &str,
) -> Result<Written, Error> {
    let compose = compose::forward(message, message::parts(bytes), to, text);
    write(account, &compose, Follows::Forward(message), unique)
}

fn write(
    account: &Account,
    compose: &Compose,
    follows: Follows<'_>,
    unique: &str,
) -> Result<Written, Error> {
    compose::write(account, compose, follows, compose::own_id(account, unique)?)
}
