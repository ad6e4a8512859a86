//! What of the rows only the service itself reads: what was asked for and what clients say of it, why it failed, and secrets
//! of addresses.
//!
//! A value is sealed for its row and column, where there is a [`Seal`]; what was written before there was one is read as
//! it is.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::{Error, Kept};

/// The key of a sealed value in its place.
const KEY: &str = "sealed";

/// How a sealed text begins.
const PREFIX: &str = "sealed:";

/// Encrypts values before they are kept.
pub trait Seal: Send + Sync {
    /// Encrypts a value for the column `what` of the row `owner`.
    ///
    /// # Errors
    /// Why it could not.
    fn seal(&self, what: &str, owner: Uuid, plain: &str) -> Result<String, String>;

    /// Decrypts a value of the column `what` of the row `owner`.
    ///
    /// # Errors
    /// Why it could not.
    fn open(&self, what: &str, owner: Uuid, sealed: &str) -> Result<String, String>;
}

impl Kept {
    /// Has what only the service reads encrypted.
    #[must_use]
    pub fn sealed_by(mut self, seal: Arc<dyn Seal>) -> Self {
        self.seal = Some(seal);
        self
    }

    /// Makes a value fit to be kept.
    pub(crate) fn shut(&self, what: &str, owner: Uuid, value: &Json) -> Result<Json, Error> {
        match &self.seal {
            None => Ok(value.clone()),
            Some(seal) => {
                let sealed = seal.seal(what, owner, &value.to_string()).map_err(Error::Sealed)?;
                Ok(json!({ KEY: sealed }))
            }
        }
    }

    /// Reads a value that was kept.
    pub(crate) fn opened(&self, what: &str, owner: Uuid, kept: Json) -> Result<Json, Error> {
        let is_sealed = kept.as_object().is_some_and(|fields| fields.len() == 1);
        match kept.get(KEY).and_then(Json::as_str).filter(|_| is_sealed) {
            None => Ok(kept),
            Some(sealed) => {
                let plain = self.open(what, owner, sealed)?;
                serde_json::from_str(&plain).map_err(|error| Error::Sealed(error.to_string()))
            }
        }
    }

    /// Makes a text fit to be kept.
    pub(crate) fn shut_text(&self, what: &str, owner: Uuid, text: &str) -> Result<String, Error> {
        match &self.seal {
            None => Ok(text.to_owned()),
            Some(seal) => {
                let sealed = seal.seal(what, owner, text).map_err(Error::Sealed)?;
                Ok(format!("{PREFIX}{sealed}"))
            }
        }
    }

    /// Reads a text that was kept.
    pub(crate) fn opened_text(
        &self,
        what: &str,
        owner: Uuid,
        kept: String,
    ) -> Result<String, Error> {
        match kept.strip_prefix(PREFIX) {
            None => Ok(kept),
            Some(sealed) => self.open(what, owner, sealed),
        }
    }

    fn open(&self, what: &str, owner: Uuid, sealed: &str) -> Result<String, Error> {
        let missing = || Error::Sealed("no encryption key is set".to_owned());
        let seal = self.seal.as_ref().ok_or_else(missing)?;
        seal.open(what, owner, sealed).map_err(Error::Sealed)
    }
}
