//! The keys that encrypt values, and the keys that are derived from each.

use std::collections::BTreeSet;

use ring::aead::{CHACHA20_POLY1305, LessSafeKey, UnboundKey};

use super::super::{Cause, Error, Result};
use crate::ids::ThreadId;

/// Longest name of a key, in bytes: each value contains it.
const LONGEST_NAME: usize = 32;

/// Keys by name: the first one encrypts new values, and all of them decrypt.
pub struct Keyring {
    keys: Vec<Key>,
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// One key, already split: the key itself encrypts no value.
pub(super) struct Key {
    pub name: String,
    /// Distinguishes another key under the same name.
    pub print: [u8; 8],
    /// Root of the keys that values are encrypted with, one per owner.
    sealing: [u8; 32],
    /// Blinds values that are found by equality: effect keys, interrupt IDs, hashes of steps and texts.
    blinding: [u8; 32],
}

impl Keyring {
    /// Makes a keyring; the first key is the one to write with.
    ///
    /// # Errors
    /// [`Error::Keys`] without a key, for a repeated name, or for a name that is not 1 to 32 letters, digits, `-`, `_`
    /// or `.`.
    pub fn new(keys: impl IntoIterator<Item = (String, [u8; 32])>) -> Result<Self> {
        let keys: Vec<Key> = keys.into_iter().map(|(name, bytes)| Key::new(name, &bytes)).collect();
        let mut names = BTreeSet::new();
        for Key { name, .. } in &keys {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(plain) {
                let why =
                    format!("a name is 1 to {LONGEST_NAME} letters, digits, -, _ or .: {name}");
                return Err(Error::Keys(why.into()));
            }
            if !names.insert(name) {
                return Err(Error::Keys(format!("two have the same name: {name}").into()));
            }
        }
        if keys.is_empty() { Err(Error::Keys("there is none".into())) } else { Ok(Self { keys }) }
    }

    /// Makes a keyring of the results of a lookup; `None` without names.
    ///
    /// # Errors
    /// As [`Keyring::new`], and [`Error::Keys`] for a key that was not found, with the reason.
    pub fn of_found<E: Into<Cause>>(
        keys: impl IntoIterator<Item = (String, Result<[u8; 32], E>)>,
    ) -> Result<Option<Self>> {
        let found = |key: Result<_, E>| key.map_err(|reason| Error::Keys(reason.into()));
        let keys = keys.into_iter().map(|(name, key)| Ok((name, found(key)?)));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        if keys.is_empty() { Ok(None) } else { Self::new(keys).map(Some) }
    }

    /// Returns the names; the first key encrypts new values.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|key| key.name.as_str())
    }

    pub(super) fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Returns the key that encrypts new values; [`Keyring::new`] ensures that there is one.
    pub(super) fn first(&self) -> &Key {
        &self.keys[0]
    }

    pub(super) fn find(&self, name: &str, print: &[u8]) -> Result<&Key> {
        match self.keys.iter().find(|key| key.name == name) {
            None => Err(Error::NoKey { key: name.to_owned() }),
            Some(key) if key.print == print => Ok(key),
            Some(_) => Err(Error::WrongKey { key: name.to_owned() }),
        }
    }
}

impl Key {
    fn new(name: String, bytes: &[u8; 32]) -> Self {
        let print = blake3::derive_key("perihelion fingerprint of a key v1", bytes);
        let (print, _) = print.split_first_chunk().unwrap_or((&[0; 8], &[]));
        Self {
            name,
            print: *print,
            sealing: blake3::derive_key("perihelion sealing of values v1", bytes),
            blinding: blake3::derive_key("perihelion blinding of lookups v1", bytes),
        }
    }

    /// Returns the cipher for the values of one owner.
    ///
    /// A key per owner keeps random 96-bit nonces apart: within one thread the chance that two of 2^32
    /// values share a nonce is about 2^-33.
    pub(super) fn cipher(&self, owner: &[u8; 16]) -> Result<LessSafeKey> {
        let key = blake3::keyed_hash(&self.sealing, owner);
        let key = UnboundKey::new(&CHACHA20_POLY1305, key.as_bytes());
        key.map(LessSafeKey::new).map_err(|_| Error::Keys("the cipher refused one".into()))
    }

    /// Returns the stored form of an effect's key or an interrupt's ID: of the same length, and not guessable.
    pub(super) fn blind(&self, key: &[u8]) -> Vec<u8> {
        let mut blinded = vec![0; key.len()];
        let mut hasher = blake3::Hasher::new_keyed(&self.blinding);
        hasher.update(b"key").update(key).finalize_xof().fill(&mut blinded);
        blinded
    }

    /// Returns the stored form of the hash of a `step` or a `text` of a thread.
    pub(super) fn blind_hash(&self, what: &str, owner: ThreadId, hash: &[u8; 32]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.blinding);
        hasher.update(what.as_bytes()).update(owner.0.as_bytes()).update(hash);
        *hasher.finalize().as_bytes()
    }
}
