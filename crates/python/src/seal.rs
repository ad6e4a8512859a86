//! Stored bytes: compressed if that saves space, encrypted with AES-GCM if there is a key.

use std::cell::RefCell;
use std::collections::HashMap;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};

use zstd::bulk::{Compressor, Decompressor};

use crate::error::Error;
use crate::msgpack;

/// Flags in the first byte.
const COMPRESSED: u8 = 1;
const ENCRYPTED: u8 = 2;

/// Shorter bytes are not compressed.
const WORTH_COMPRESSING: usize = 96;
const LEVEL: i32 = 3;

/// Bytes of the digest that names the key before the ciphertext.
const KEY_NAME: usize = 4;

/// Longer values are refused, so more is damage.
const LONGEST: usize = 1 << 30;

thread_local! {
    // Making a context costs more than using it for a row.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

fn compress(plain: &[u8]) -> std::io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|compressor| {
        if compressor.is_none() {
            *compressor = Some(Compressor::new(LEVEL)?);
        }
        compressor.as_mut().map_or_else(|| Ok(Vec::new()), |compressor| compressor.compress(plain))
    })
}

fn decompress(body: &[u8], length: usize) -> std::io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|decompressor| {
        if decompressor.is_none() {
            *decompressor = Some(Decompressor::new()?);
        }
        decompressor.as_mut().map_or_else(|| Ok(Vec::new()), |one| one.decompress(body, length))
    })
}

/// A row of a value: its version, the version before it, and the sealed data.
type Stored<'py> = (String, Option<String>, String, Bound<'py, PyBytes>);

/// A decrypted row: the type of its data, the part of the previous value that it reuses, and the data.
type Opened<'py> = (String, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

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

/// Seals and opens stored bytes. The first key encrypts, all decrypt; without a key there is no encryption.
#[pyclass(frozen, module = "perihelion._native")]
pub struct Seal {
    keys: Vec<Key>,
    random: SystemRandom,
}

impl Seal {
    fn sealed(&self, plain: &[u8], place: &str) -> Result<Vec<u8>, Error> {
        if plain.len() > LONGEST {
            return Err(Error::TooLong(plain.len()));
        }
        let mut body = None;
        if plain.len() >= WORTH_COMPRESSING {
            let mut out = (plain.len() as u32).to_le_bytes().to_vec();
            out.extend(compress(plain)?);
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
        Ok(decompress(body, length)?)
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

    /// Opens the rows that a version follows from, oldest first.
    fn open_chain<'py>(
        &self,
        py: Python<'py>,
        version: String,
        rows: Vec<Stored<'py>>,
        place: &str,
    ) -> PyResult<Vec<Opened<'py>>> {
        let by_version: HashMap<&str, &Stored<'py>> =
            rows.iter().map(|row| (row.0.as_str(), row)).collect();
        let mut chain = Vec::new();
        let mut wanted = Some(&version);
        while let Some(version) = wanted {
            let Some(row) = by_version.get(version.as_str()).filter(|_| chain.len() <= rows.len())
            else {
                let text = format!(
                    "a value cannot be read, a row that it follows from is missing: {place}"
                );
                return Err(PyRuntimeError::new_err(text));
            };
            let plain = self.opened(row.3.as_bytes(), place)?;
            let [kind, parts, data] = msgpack::texts(&plain)?;
            let kind = String::from_utf8_lossy(kind).into_owned();
            chain.push((kind, PyBytes::new(py, parts), PyBytes::new(py, data)));
            wanted = row.1.as_ref();
        }
        chain.reverse();
        Ok(chain)
    }
}
