//! The columns that only the service itself reads: the requests of runs and their clients' metadata, their errors, and
//! secrets of addresses.
//!
//! A value is encrypted for its row and column by the keys of the threads, if there are any; earlier plain values are
//! read unchanged.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use perihelion_database::{Cause, Value};
use perihelion_engine::checkpoint::Keyring;
use serde_json::{Value as Json, json};
use uuid::Uuid;

use crate::{Error, Kept, Result};

/// The key of a sealed value in its place.
const KEY: &str = "sealed";

const PREFIX: &str = "sealed:";

fn sealed(keys: &Keyring, what: &str, owner: Uuid, plain: String) -> Result<String> {
    let sealed = keys.seal_beside(what, owner, plain.into_bytes());
    sealed.map(|bytes| STANDARD.encode(bytes)).map_err(|error| Error::Sealed(error.into()))
}

fn opened(keys: &Keyring, what: &str, owner: Uuid, sealed: &str) -> Result<String, Cause> {
    Ok(String::from_utf8(keys.open_beside(what, owner, &STANDARD.decode(sealed)?)?)?)
}

impl Kept {
    /// Encrypts the columns that only the service reads.
    #[must_use]
    pub fn sealed_by(self, keys: Keyring) -> Self {
        Self { keys: Some(Arc::new(keys)), ..self }
    }

    pub(crate) fn shut(&self, what: &str, owner: Uuid, value: &Json) -> Result<Json> {
        match &self.keys {
            None => Ok(value.clone()),
            Some(keys) => Ok(json!({ KEY: sealed(keys, what, owner, value.to_string())? })),
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
        match &self.keys {
            None => Ok(text.to_owned()),
            Some(keys) => Ok(format!("{PREFIX}{}", sealed(keys, what, owner, text.to_owned())?)),
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
        let keys = self.keys.as_ref().ok_or_else(missing)?;
        opened(keys, what, owner, sealed).map_err(Error::Sealed)
    }
}
