//! Encrypts what stands beside the threads with the keys that encrypt the threads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;

use super::kept::Seal;
use perihelion_engine::checkpoint::Keyring;

/// The keys of the settings.
pub(super) struct Sealing(pub Keyring);

impl Seal for Sealing {
    fn seal(&self, what: &str, owner: Uuid, plain: &str) -> Result<String, String> {
        let sealed = self.0.seal_beside(what, owner, plain.as_bytes().to_vec());
        sealed.map(|bytes| STANDARD.encode(bytes)).map_err(|error| error.to_string())
    }

    fn open(&self, what: &str, owner: Uuid, sealed: &str) -> Result<String, String> {
        let bytes = STANDARD.decode(sealed).map_err(|error| error.to_string())?;
        let plain = self.0.open_beside(what, owner, &bytes).map_err(|error| error.to_string())?;
        String::from_utf8(plain).map_err(|error| error.to_string())
    }
}
