//! The columns that only the service itself reads: the requests of runs and their clients' metadata, their errors, and
//! secrets of addresses.
//!
//! A value is encrypted for its row and column, if there is a [`Seal`]; earlier plain values are read unchanged.

use std::sync::Arc;

use perihelion_database::Value;
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::{Cause, Error, Kept, Result};

/// The key of a sealed value in its place.
const KEY: &str = "sealed";

const PREFIX: &str = "sealed:";

pub trait Seal: Send + Sync {
    /// Encrypts a value for the column `what` of the row `owner`.
    fn seal(&self, what: &str, owner: Uuid, plain: &str) -> Result<String, Cause>;

    /// Decrypts a value of the column `what` of the row `owner`.
    fn open(&self, what: &str, owner: Uuid, sealed: &str) -> Result<String, Cause>;
}

impl Kept {
    /// Encrypts the columns that only the service reads.
    #[must_use]
    pub fn sealed_by(mut self, seal: Arc<dyn Seal>) -> Self {
        self.seal = Some(seal);
        self
    }

    pub(crate) fn shut(&self, what: &str, owner: Uuid, value: &Json) -> Result<Json> {
        match &self.seal {
            None => Ok(value.clone()),
            Some(seal) => {
                let sealed = seal.seal(what, owner, &value.to_string()).map_err(Error::Sealed)?;
                Ok(json!({ KEY: sealed }))
            }
        }
    }

    /// As [`Kept::shut`], for a column that keeps JSON as it was written.
    pub(crate) fn shut_as_written(&self, what: &str, owner: Uuid, value: &Json) -> Result<Value> {
        Ok(Value::Written(Some(self.shut(what, owner, value)?.to_string())))
    }

    pub(crate) fn opened(&self, what: &str, owner: Uuid, kept: Json) -> Result<Json> {
        let is_sealed = kept.as_object().is_some_and(|fields| fields.len() == 1);
        match kept.get(KEY).and_then(Json::as_str).filter(|_| is_sealed) {
            None => Ok(kept),
            Some(sealed) => {
                let plain = self.open(what, owner, sealed)?;
                serde_json::from_str(&plain).map_err(|error| Error::Sealed(error.into()))
            }
        }
    }

    pub(crate) fn shut_text(&self, what: &str, owner: Uuid, text: &str) -> Result<String> {
        match &self.seal {
            None => Ok(text.to_owned()),
            Some(seal) => {
                let sealed = seal.seal(what, owner, text).map_err(Error::Sealed)?;
                Ok(format!("{PREFIX}{sealed}"))
            }
        }
    }

    pub(crate) fn opened_text(&self, what: &str, owner: Uuid, kept: String) -> Result<String> {
        match kept.strip_prefix(PREFIX) {
            None => Ok(kept),
            Some(sealed) => self.open(what, owner, sealed),
        }
    }

    fn open(&self, what: &str, owner: Uuid, sealed: &str) -> Result<String> {
        let missing = || Error::Sealed("no encryption key is set".into());
        let seal = self.seal.as_ref().ok_or_else(missing)?;
        seal.open(what, owner, sealed).map_err(Error::Sealed)
    }
}
