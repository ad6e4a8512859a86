//! The encryption section: which keys encrypt what threads hold; the keys themselves stand elsewhere.

use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::resolve::{Setting, Sources, any, section};
use super::strict::Error;

section! {
    /// Keys of the encryption section.
    EncryptionSection, EncryptionFile, "encryption" {
        /// Keys as `NAME=file:PATH` or `NAME=env:VARIABLE`, each 64 hexadecimal digits there; the first one
        /// encrypts, all of them read. None: nothing is encrypted.
        keys: Option<KeyRefs> = None, "PERIHELION_ENCRYPTION_KEYS", any;
    }
}

/// Where keys are to be found.
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

/// A key by name.
#[derive(Clone, Debug)]
pub struct EncryptionKey {
    pub name: String,
    digits: Result<SecretString, String>,
}

impl EncryptionKey {
    /// Returns the key itself: for encrypting only.
    ///
    /// # Errors
    /// A sentence that says why there is none; commands that need no database can do without.
    pub fn expose(&self) -> Result<[u8; 32], String> {
        let digits = self.digits.as_ref().map_err(|reason| format!("{}: {reason}", self.name))?;
        read(digits.expose_secret()).ok_or_else(|| {
            let wanted = "a key is 64 hexadecimal digits, as `openssl rand -hex 32` makes them";
            format!("{}: {wanted} (it is not shown)", self.name)
        })
    }
}

/// Everything the settings say of encryption.
#[derive(Clone, Debug, Default)]
pub struct Encryption {
    /// The first one encrypts; empty: nothing is encrypted.
    pub keys: Vec<EncryptionKey>,
}

impl Encryption {
    pub(super) const KEYS: &'static [super::Key] = EncryptionSection::KEYS;

    /// Returns the keys by name, each with why there is none where there is none.
    pub fn exposed(&self) -> impl Iterator<Item = (String, Result<[u8; 32], String>)> {
        self.keys.iter().map(|key| (key.name.clone(), key.expose()))
    }

    pub(super) fn resolve(file: EncryptionFile, sources: &Sources<'_>) -> Result<Self, Error> {
        let EncryptionSection { keys } = EncryptionSection::resolve(file, sources)?;
        let found = |KeyRef { name, place }: KeyRef| {
            let text = match &place {
                KeyPlace::File(path) => std::fs::read_to_string(path)
                    .map_err(|error| format!("cannot read {}: {error}", path.display())),
                KeyPlace::Variable(variable) => sources
                    .env(variable)
                    .ok_or_else(|| format!("the environment variable is not set: {variable}")),
            };
            EncryptionKey { name, digits: text.map(|text| SecretString::from(text.trim())) }
        };
        Ok(Self { keys: keys.unwrap_or_default().0.into_iter().map(found).collect() })
    }
}

fn read(digits: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if pairs.len() != key.len() || !rest.is_empty() {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(pairs) {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(key)
}

impl TryFrom<Vec<String>> for KeyRefs {
    type Error = String;

    fn try_from(list: Vec<String>) -> Result<Self, String> {
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
        keys.map(Self).ok_or_else(|| {
            "expected keys as NAME=file:PATH or NAME=env:VARIABLE, never the key itself".to_owned()
        })
    }
}

impl Setting for KeyRefs {
    fn from_text(text: &str) -> Result<Self, String> {
        let list = text.split(',').map(str::trim).filter(|one| !one.is_empty());
        list.map(str::to_owned).collect::<Vec<_>>().try_into()
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
