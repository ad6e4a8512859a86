//! One encrypted value: a header that names key and owner, a nonce, the ciphertext with its tag.
//!
//! `1 ‖ length of name ‖ name ‖ fingerprint (8) ‖ owner (16) ‖ nonce (12) ‖ ChaCha20-Poly1305 (RFC 8439)`. The tag
//! also covers the header and the value's place, so that a value fits nowhere else.

use ring::aead::{Aad, Nonce};
use ring::rand::{SecureRandom as _, SystemRandom};
use uuid::Uuid;

use super::super::{Error, Result};
use super::keyring::Keyring;
use crate::ids::ThreadId;

const VERSION: u8 = 1;
const NONCE: usize = 12;

/// The kind and place of a value; part of the data that its tag covers.
#[derive(Debug)]
pub(super) struct SealContext(Vec<u8>);

impl SealContext {
    /// Names a place by its kind and parts; each part has its length, so that two places never have the same name.
    pub(super) fn new(kind: &str, parts: &[&[u8]]) -> Self {
        let mut bytes = Vec::new();
        for part in [kind.as_bytes()].iter().chain(parts) {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part);
        }
        Self(bytes)
    }
}

struct Parts<'a> {
    header: &'a [u8],
    name: &'a str,
    print: &'a [u8],
    owner: [u8; 16],
    nonce: [u8; NONCE],
    body: &'a [u8],
}

fn parts(sealed: &[u8]) -> Option<Parts<'_>> {
    let (&[version, length], rest) = sealed.split_first_chunk()?;
    let (name, rest) = rest.split_at_checked(usize::from(length))?;
    let (print, rest) = rest.split_at_checked(8)?;
    let (owner, rest) = rest.split_first_chunk::<16>()?;
    let (nonce, body) = rest.split_first_chunk::<NONCE>()?;
    let header = &sealed[..sealed.len() - rest.len()];
    let name = std::str::from_utf8(name).ok()?;
    (version == VERSION).then_some(Parts {
        header,
        name,
        print,
        owner: *owner,
        nonce: *nonce,
        body,
    })
}

pub(in super::super) fn key_name(sealed: &[u8]) -> String {
    parts(sealed).map_or("(unknown)", |parts| parts.name).to_owned()
}

fn covered(header: &[u8], place: &SealContext) -> Vec<u8> {
    [header, &place.0].concat()
}

pub(super) fn seal(
    keys: &Keyring,
    owner: [u8; 16],
    place: &SealContext,
    plain: Vec<u8>,
) -> Result<Vec<u8>> {
    let failed = |_| Error::Keys("a value could not be encrypted".into());
    let key = keys.first();
    let mut sealed = vec![VERSION, key.name.len() as u8];
    sealed.extend_from_slice(key.name.as_bytes());
    sealed.extend_from_slice(&key.print);
    sealed.extend_from_slice(&owner);
    let mut nonce = [0; NONCE];
    SystemRandom::new().fill(&mut nonce).map_err(failed)?;
    let covered = covered(&sealed, place);
    let mut body = plain;
    key.cipher(&owner)?
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(covered),
            &mut body,
        )
        .map_err(failed)?;
    sealed.extend_from_slice(&nonce);
    sealed.append(&mut body);
    Ok(sealed)
}

/// Decrypts a value at its place; returns it with its owner.
///
/// `what` and `thread` name it in an error.
pub(super) fn open(
    keys: &Keyring,
    place: &SealContext,
    sealed: &[u8],
    thread: ThreadId,
    what: impl Fn() -> String,
) -> Result<(Vec<u8>, [u8; 16])> {
    let forged = || Error::Forged { thread, what: what() };
    let parts = parts(sealed).ok_or_else(forged)?;
    let key = keys.find(parts.name, parts.print)?;
    let mut body = parts.body.to_vec();
    let covered = covered(parts.header, place);
    let nonce = Nonce::assume_unique_for_key(parts.nonce);
    let length = key
        .cipher(&parts.owner)?
        .open_in_place(nonce, Aad::from(covered), &mut body)
        .map_err(|_| forged())?
        .len();
    body.truncate(length);
    Ok((body, parts.owner))
}

fn beside(what: &str, owner: Uuid) -> SealContext {
    SealContext::new("beside", &[what.as_bytes(), owner.as_bytes()])
}

impl Keyring {
    /// Encrypts a value for the column `what` of the row `owner`.
    ///
    /// # Errors
    /// [`Error::Keys`].
    pub fn seal_beside(&self, what: &str, owner: Uuid, plain: Vec<u8>) -> Result<Vec<u8>> {
        seal(self, *owner.as_bytes(), &beside(what, owner), plain)
    }

    /// Decrypts a value of the column `what` of the row `owner`.
    ///
    /// # Errors
    /// [`Error::Forged`] for an altered or moved value, [`Error::NoKey`] and [`Error::WrongKey`].
    pub fn open_beside(&self, what: &str, owner: Uuid, sealed: &[u8]) -> Result<Vec<u8>> {
        let named = || what.to_owned();
        Ok(open(self, &beside(what, owner), sealed, ThreadId(owner), named)?.0)
    }
}
