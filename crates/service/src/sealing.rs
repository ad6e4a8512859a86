//! Encrypts the rows next to the threads with the keys of the threads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;

use super::kept::{Cause, Seal};
use perihelion_engine::checkpoint::Keyring;

pub(super) struct Sealing(pub Keyring);

impl Seal for Sealing {
    fn seal(&self, what: &str, owner: Uuid, plain: &str) -> Result<String, Cause> {
        Ok(STANDARD.encode(self.0.seal_beside(what, owner, plain.as_bytes().to_vec())?))
    }

    fn open(&self, what: &str, owner: Uuid, sealed: &str) -> Result<String, Cause> {
        Ok(String::from_utf8(self.0.open_beside(what, owner, &STANDARD.decode(sealed)?)?)?)
    }
}
