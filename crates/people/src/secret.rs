//! Random secrets, and what recognises them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};

use crate::Error;

/// Bytes of randomness in every secret.
const BYTES: usize = 32;

/// A secret as it is shown once; printing it for debugging shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl Secret {
    /// Draws a secret of 256 random bits behind a prefix that says what it is for.
    pub(crate) fn draw(prefix: &str) -> Result<Self, Error> {
        let mut bytes = [0; BYTES];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| Error::Hash("the system provides no random numbers".to_owned()))?;
        Ok(Self(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes))))
    }

    /// Returns the secret itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Returns what recognises a secret of 256 random bits.
///
/// Such a secret cannot be guessed, so a plain hash keeps it (BLAKE3, keyed by purpose, so that a hash from one table fits
/// no other); a slow hash would only cost every request its time.
pub(crate) fn digest(purpose: &str, secret: &str) -> Vec<u8> {
    blake3::derive_key(purpose, secret.as_bytes()).to_vec()
}
