//! Stored bytes: compressed where that saves space, encrypted with AES-GCM where a key is given.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};

use crate::error::Error;

/// Flags in the first byte.
const COMPRESSED: u8 = 1;
const ENCRYPTED: u8 = 2;

/// Shorter bytes are not compressed.
const WORTH_COMPRESSING: usize = 96;
const LEVEL: i32 = 3;

/// Bytes of the digest of a key that name it in front of what it encrypted.
const KEY_NAME: usize = 4;

/// More than this is never written as one value, so more is damage.
const LONGEST: usize = 1 << 30;

struct Key {
    name: [u8; KEY_NAME],
    cipher: LessSafeKey,
}

impl Key {
    fn new(bytes: &[u8]) -> Result<Self, Error> {
        let algorithm = match bytes.len() {
            16 => &AES_128_GCM,
            32 => &AES_256_GCM,
            length => return Err(Error::KeyLength(length)),
        };
        let key = UnboundKey::new(algorithm, bytes).map_err(|_| Error::KeyLength(bytes.len()))?;
        let mut name = [0; KEY_NAME];
        name.copy_from_slice(&digest::digest(&digest::SHA256, bytes).as_ref()[..KEY_NAME]);
        Ok(Self { name, cipher: LessSafeKey::new(key) })
    }
}

/// Seals and opens stored bytes. The first key encrypts, all decrypt; without a key nothing is encrypted.
#[pyclass(frozen, module = "perihelion._native")]
pub struct Seal {
    keys: Vec<Key>,
    random: SystemRandom,
}

impl Seal {
    fn sealed(&self, plain: &[u8], place: &str) -> Result<Vec<u8>, Error> {
        let mut body = None;
        if plain.len() >= WORTH_COMPRESSING {
            let mut out = (plain.len() as u32).to_le_bytes().to_vec();
            out.extend(zstd::bulk::compress(plain, LEVEL)?);
            body = Some(out).filter(|out| out.len() < plain.len());
        }
        let mut flags = if body.is_some() { COMPRESSED } else { 0 };
        let mut body = body.unwrap_or_else(|| plain.to_vec());
        let mut out = Vec::with_capacity(body.len() + 40);
        if let Some(key) = self.keys.first() {
            flags |= ENCRYPTED;
            let mut nonce = [0; NONCE_LEN];
            self.random.fill(&mut nonce).map_err(|_| Error::Damaged("no random numbers"))?;
            out.push(flags);
            out.extend(key.name);
            out.extend(nonce);
            let nonce = Nonce::assume_unique_for_key(nonce);
            let sealed = key.cipher.seal_in_place_append_tag(nonce, Aad::from(place), &mut body);
            sealed.map_err(|_| Error::Damaged("too long to encrypt"))?;
        } else {
            out.push(flags);
        }
        out.extend(body);
        Ok(out)
    }

    fn opened(&self, stored: &[u8], place: &str) -> Result<Vec<u8>, Error> {
        let (&flags, mut body) = stored.split_first().ok_or(Error::Damaged("nothing stored"))?;
        let mut plain = Vec::new();
        if flags & ENCRYPTED != 0 {
            let (name, rest) = body.split_at_checked(KEY_NAME).ok_or(Error::Damaged("cut off"))?;
            let (nonce, rest) =
                rest.split_at_checked(NONCE_LEN).ok_or(Error::Damaged("cut off"))?;
            let key = self.keys.iter().find(|key| key.name == name).ok_or(Error::Key)?;
            let nonce =
                Nonce::try_assume_unique_for_key(nonce).map_err(|_| Error::Damaged("cut off"))?;
            plain.extend_from_slice(rest);
            let length = key
                .cipher
                .open_in_place(nonce, Aad::from(place), &mut plain)
                .map_err(|_| Error::Key)?
                .len();
            plain.truncate(length);
            body = &plain;
        } else if !self.keys.is_empty() && flags & !COMPRESSED != 0 {
            return Err(Error::Damaged("unknown flags"));
        }
        if flags & COMPRESSED == 0 {
            return Ok(body.to_vec());
        }
        let (length, body) = body.split_first_chunk::<4>().ok_or(Error::Damaged("cut off"))?;
        let length = u32::from_le_bytes(*length) as usize;
        if length > LONGEST {
            return Err(Error::Damaged("longer than any value"));
        }
        Ok(zstd::bulk::decompress(body, length)?)
    }
}

#[pymethods]
impl Seal {
    #[new]
    fn new(keys: Vec<Vec<u8>>) -> Result<Self, Error> {
        let keys = keys.iter().map(|key| Key::new(key)).collect::<Result<_, _>>()?;
        Ok(Self { keys, random: SystemRandom::new() })
    }

    /// Compresses and encrypts bytes for their place, such as `value:messages`.
    fn seal<'py>(
        &self,
        py: Python<'py>,
        plain: &[u8],
        place: &str,
    ) -> Result<Bound<'py, PyBytes>, Error> {
        Ok(PyBytes::new(py, &self.sealed(plain, place)?))
    }

    /// Opens sealed bytes; fails if they were sealed for another place or with another key.
    fn open<'py>(
        &self,
        py: Python<'py>,
        stored: &[u8],
        place: &str,
    ) -> Result<Bound<'py, PyBytes>, Error> {
        Ok(PyBytes::new(py, &self.opened(stored, place)?))
    }
}
