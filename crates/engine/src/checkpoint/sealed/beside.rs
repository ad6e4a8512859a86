//! Values that stand beside threads in the same database, sealed for one row and one column, and how their encryption is renewed.

use uuid::Uuid;

use super::super::Error;
use super::keyring::Keyring;
use super::seal::{SealContext, open, seal};
use crate::ids::ThreadId;

fn place(what: &str, owner: Uuid) -> SealContext {
    SealContext::new("beside", &[what.as_bytes(), owner.as_bytes()])
}

impl Keyring {
    /// Encrypts a value for the column `what` of the row `owner`.
    ///
    /// # Errors
    /// [`Error::Keys`].
    pub fn seal_beside(&self, what: &str, owner: Uuid, plain: Vec<u8>) -> Result<Vec<u8>, Error> {
        seal(self, *owner.as_bytes(), &place(what, owner), plain)
    }

    /// Decrypts a value of the column `what` of the row `owner`.
    ///
    /// # Errors
    /// [`Error::Forged`] for one that was altered or moved, [`Error::NoKey`] and [`Error::WrongKey`].
    pub fn open_beside(&self, what: &str, owner: Uuid, sealed: &[u8]) -> Result<Vec<u8>, Error> {
        let named = || what.to_owned();
        Ok(open(self, &place(what, owner), sealed, ThreadId(owner), named)?.0)
    }
}
