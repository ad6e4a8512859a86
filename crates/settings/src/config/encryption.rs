//! The encryption section: the keys of threads, which are stored elsewhere.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::resolve::{Section, Setting, Sources, any, list, section};
use super::strict::{Error, Invalid};

section! {
    /// Keys of the encryption section.
    EncryptionSection, EncryptionFile, "encryption" {
        /// Keys as `NAME=file:PATH` or `NAME=env:VARIABLE`, each 64 hexadecimal digits there; the first one
        /// encrypts, all of them read. None: nothing is encrypted.
        keys: Option<KeyRefs> = None, "PERIHELION_ENCRYPTION_KEYS", any;
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct KeyRefs(Vec<KeyRef>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct KeyRef {
    name: String,
    place: KeyPlace,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum KeyPlace {
    File(PathBuf),
    Variable(String),
}

/// A named key; commands without a database do not need it.
#[derive(Clone, Debug)]
pub struct EncryptionKey {
    pub name: String,
    /// The environment variable that contains it, if one does.
    pub variable: Option<String>,
    digits: Result<SecretString, Arc<Invalid>>,
}

#[derive(Debug, thiserror::Error)]
#[error("{name}: {source}")]
pub struct NoKey {
    name: String,
    source: Arc<Invalid>,
}

#[derive(Clone, Debug, Default)]
pub struct Encryption {
    /// The first one encrypts; empty means no encryption.
    pub keys: Vec<EncryptionKey>,
}

impl Encryption {
    /// Returns the keys themselves by name, for encryption only, each missing one with the reason.
    pub fn exposed(&self) -> impl Iterator<Item = (String, Result<[u8; 32], NoKey>)> {
        self.keys.iter().map(|EncryptionKey { name, digits, .. }| {
            let key = digits.as_ref().map_err(Arc::clone).and_then(|digits| {
                read(digits.expose_secret()).ok_or_else(|| Invalid::KeyDigits.into())
            });
            (name.clone(), key.map_err(|source| NoKey { name: name.clone(), source }))
        })
    }
}

impl Section for Encryption {
    type File = EncryptionFile;
    const KEYS: &'static [super::Key] = EncryptionSection::KEYS;

    fn resolve(file: EncryptionFile, sources: &Sources<'_>) -> Result<Self, Error> {
        let EncryptionSection { keys } = EncryptionSection::resolve(file, sources)?;
        let found = |KeyRef { name, place }: KeyRef| {
            let text = match &place {
                KeyPlace::File(path) => std::fs::read_to_string(path)
                    .map_err(|source| Invalid::KeyFile { path: path.clone(), source }),
                KeyPlace::Variable(variable) => {
                    sources.env(variable).ok_or_else(|| Invalid::KeyVariable(variable.clone()))
                }
            };
            let digits = text.map(|text| SecretString::from(text.trim()));
            let variable = match place {
                KeyPlace::Variable(variable) => Some(variable),
                KeyPlace::File(_) => None,
            };
            EncryptionKey { name, variable, digits: digits.map_err(Arc::new) }
        };
        Ok(Self { keys: keys.unwrap_or_default().0.into_iter().map(found).collect() })
    }
}

fn read(digits: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    bytes.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

impl TryFrom<Vec<String>> for KeyRefs {
    type Error = Invalid;

    fn try_from(list: Vec<String>) -> Result<Self, Invalid> {
        let key = |text: String| {
            let (name, place) = text.split_once('=')?;
            let place = match place.trim().split_once(':')? {
                ("file", path) => KeyPlace::File(PathBuf::from(path)),
                ("env", variable) => KeyPlace::Variable(variable.to_owned()),
                _ => return None,
            };
            Some(KeyRef { name: name.trim().to_owned(), place })
        };
        let keys: Option<Vec<KeyRef>> = list.into_iter().map(key).collect();
        keys.map(Self).ok_or(Invalid::KeyReferences)
    }
}

impl Setting for KeyRefs {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        list(text)
    }

    fn placed_in(mut self, directory: &Path) -> Self {
        for KeyRef { place, .. } in &mut self.0 {
            if let KeyPlace::File(path) = place {
                *path = directory.join(&path);
            }
        }
        self
    }
}
