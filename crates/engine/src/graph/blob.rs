//! Long texts of a state, which the state itself only names.
//!
//! A node writes a [`Blob`] that holds its text. When the engine accepts the update, it replaces the text by its name.
//! The store writes the text in the transaction of the step, and later readers load it on demand
//! ([`TaskContext::read`](super::TaskContext::read)).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Dict, Log, Update};

/// Largest text in bytes that stays in the state; a separate row for a smaller text would cost more than it saves.
pub const KEPT_ABOVE: usize = 1024;

/// A text of a state: it contains the text until its step is merged, and the name of the text from then on.
#[derive(Clone, PartialEq, Eq)]
pub struct Blob(Content);

#[derive(Clone, PartialEq, Eq)]
enum Content {
    Text(Arc<str>),
    Kept(BlobName),
}

/// Names a stored text by its hash and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobName {
    /// BLAKE3 of the text.
    pub hash: [u8; 32],
    /// Length of the text in bytes.
    pub bytes: u64,
}

/// A text on its way to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobText {
    /// Hash and length.
    pub name: BlobName,
    /// The text.
    pub text: Arc<str>,
}

impl BlobName {
    /// Names a text.
    pub fn of(text: &str) -> Self {
        Self { hash: *blake3::hash(text.as_bytes()).as_bytes(), bytes: text.len() as u64 }
    }
}

impl Blob {
    /// Wraps a text; a text above [`KEPT_ABOVE`] bytes is stored next to the state when its step is merged.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(Content::Text(text.into()))
    }

    /// Returns the text if the store does not have it yet.
    pub fn text(&self) -> Option<&Arc<str>> {
        match &self.0 {
            Content::Text(text) => Some(text),
            Content::Kept(_) => None,
        }
    }

    /// Returns the name of the stored text; `None` before it is stored.
    pub fn kept(&self) -> Option<BlobName> {
        match &self.0 {
            Content::Text(_) => None,
            Content::Kept(name) => Some(*name),
        }
    }

    /// Returns the name that the text has, or will have in the store.
    pub fn name(&self) -> BlobName {
        match &self.0 {
            Content::Text(text) => BlobName::of(text),
            Content::Kept(name) => *name,
        }
    }

    /// Returns the length of the text, in bytes.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Content::Text(text) => text.len(),
            Content::Kept(name) => name.bytes as usize,
        }
    }

    /// Takes a long text out and leaves its name.
    fn take(&mut self) -> Option<BlobText> {
        let Content::Text(text) = &self.0 else { return None };
        if text.len() <= KEPT_ABOVE {
            return None;
        }
        let name = BlobName::of(text);
        let text = Arc::clone(text);
        self.0 = Content::Kept(name);
        Some(BlobText { name, text })
    }
}

impl std::fmt::Debug for Blob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Content::Text(text) => f.debug_tuple("Blob").field(text).finish(),
            Content::Kept(name) => f.debug_tuple("Blob").field(name).finish(),
        }
    }
}

impl Default for Blob {
    fn default() -> Self {
        Self::new("")
    }
}

impl From<String> for Blob {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Blob {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredName {
    /// In hexadecimal.
    blob: String,
    bytes: u64,
}

impl Serialize for BlobName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let blob = blake3::Hash::from_bytes(self.hash).to_hex().to_string();
        StoredName { blob, bytes: self.bytes }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for BlobName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let StoredName { blob, bytes } = StoredName::deserialize(from)?;
        let hash = blake3::Hash::from_hex(&blob)
            .map_err(|_| D::Error::invalid_value(Unexpected::Str(&blob), &"a BLAKE3 hash"))?;
        Ok(Self { hash: *hash.as_bytes(), bytes })
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Content::Text(text) => to.serialize_str(text),
            Content::Kept(name) => name.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Stored {
            Text(String),
            Kept(BlobName),
        }
        Ok(match Stored::deserialize(from)? {
            Stored::Text(text) => Self::new(text),
            Stored::Kept(name) => Self(Content::Kept(name)),
        })
    }
}

/// A value that can contain blobs.
pub trait Blobs {
    /// Shows each blob.
    fn each_blob(&self, see: &mut dyn FnMut(&Blob));

    /// Calls a function with each blob, which can replace it.
    fn each_blob_mut(&mut self, see: &mut dyn FnMut(&mut Blob));
}

impl Blobs for Blob {
    fn each_blob(&self, see: &mut dyn FnMut(&Blob)) {
        see(self);
    }

    fn each_blob_mut(&mut self, see: &mut dyn FnMut(&mut Blob)) {
        see(self);
    }
}

macro_rules! blobs_within {
    ($([$($generic:tt)+] $kind:ty: $each:ident, $each_mut:ident;)+) => {$(
        impl<$($generic)+> Blobs for $kind {
            fn each_blob(&self, see: &mut dyn FnMut(&Blob)) {
                self.$each().for_each(|one| one.each_blob(see));
            }

            fn each_blob_mut(&mut self, see: &mut dyn FnMut(&mut Blob)) {
                self.$each_mut().for_each(|one| one.each_blob_mut(see));
            }
        }
    )+};
}

blobs_within! {
    [T: Blobs] Option<T>: iter, iter_mut;
    [T: Blobs] Vec<T>: iter, iter_mut;
    [K, T: Blobs] BTreeMap<K, T>: values, values_mut;
    [K, T: Blobs] HashMap<K, T>: values, values_mut;
}

impl<T: Blobs + Clone> Blobs for Log<T> {
    fn each_blob(&self, see: &mut dyn FnMut(&Blob)) {
        self.iter().for_each(|one| one.each_blob(see));
    }

    fn each_blob_mut(&mut self, see: &mut dyn FnMut(&mut Blob)) {
        for index in 0..self.len() {
            if let Some(one) = self.get_mut(index) {
                one.each_blob_mut(see);
            }
        }
    }
}

impl<T: Blobs + Clone> Blobs for Dict<T> {
    fn each_blob(&self, see: &mut dyn FnMut(&Blob)) {
        self.values().for_each(|one| one.each_blob(see));
    }

    fn each_blob_mut(&mut self, see: &mut dyn FnMut(&mut Blob)) {
        let keys: Vec<String> = self.keys().cloned().collect();
        for key in keys {
            if let Some(one) = self.get_mut(&key) {
                one.each_blob_mut(see);
            }
        }
    }
}

/// Takes the long texts out of an update; returns the names of all that the update refers to, and those texts.
pub(super) fn take_texts<U: Update>(update: &mut U) -> (Vec<BlobName>, Vec<BlobText>) {
    let mut names = BTreeSet::new();
    let mut texts = BTreeMap::new();
    update.each_blob_mut(&mut |blob| {
        if let Some(taken) = blob.take() {
            texts.entry(taken.name).or_insert(taken);
        }
        names.extend(blob.kept());
    });
    (names.into_iter().collect(), texts.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::graph_state! {
        struct Shelf, update ShelfUpdate, version 1, blobs [books, newest] {
            books: Dict<Blob> => merge,
            newest: Option<Blob> => overwrite,
            readers: u32 => overwrite,
        }
    }

    use crate::graph::State as _;

    #[test]
    fn a_long_text_is_moved_out_of_an_update_and_a_short_one_stays() {
        let long: Blob = "x".repeat(KEPT_ABOVE + 1).into();
        let books =
            BTreeMap::from([("a".to_owned(), long.clone()), ("b".to_owned(), "short".into())]);
        let mut update = ShelfUpdate::new().books(books).newest(Some(long.clone())).readers(2);
        let (names, texts) = take_texts(&mut update);
        assert_eq!(names, [long.name()]);
        assert_eq!(texts, [BlobText { name: long.name(), text: Arc::clone(long.text().unwrap()) }]);
        // A text that was taken is only named from then on, at each of its places.
        assert_eq!(take_texts(&mut update), (vec![long.name()], Vec::new()));

        let mut shelf = Shelf::default();
        shelf.apply(update);
        let mut seen = Vec::new();
        shelf.each_blob(&mut |blob| seen.extend(blob.kept()));
        assert_eq!(seen, [long.name(), long.name()]);
        assert_eq!(shelf.books.get("b").and_then(Blob::text).map(AsRef::as_ref), Some("short"));
    }

    #[test]
    fn a_blob_is_stored_as_its_text_or_as_its_name() {
        let text = Blob::new("as it was stored before there were names");
        let read = |json: &str| serde_json::from_str::<Blob>(json);
        assert_eq!(read(&serde_json::to_string(&text).unwrap()).unwrap(), text);
        let mut kept = Blob::new("y".repeat(5_000));
        kept.take().unwrap();
        let json = serde_json::to_string(&kept).unwrap();
        assert!(json.starts_with("{\"blob\":\"") && json.ends_with("\"bytes\":5000}"), "{json}");
        assert_eq!(read(&json).unwrap(), kept);
        assert_eq!((kept.text(), kept.bytes()), (None, 5_000));
        assert!(read("{\"blob\":\"ab\",\"bytes\":1}").is_err());
    }
}
