//! Makes of a file what is kept of it: text, outline, parents, and items for the index.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};
use perihelion_parse::Parsed;
use perihelion_parse::chunk::{Chunks, Options, chunk};
use perihelion_recall::{ContentHash, Item, content_hash};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::people;
use crate::text::Places;

/// Characters of a text that its description is made from.
const BEGINNING: usize = 6_000;

/// A document to be added.
#[derive(Clone, Debug)]
pub struct Input {
    /// Where it comes from: a file's path, or a name for a text.
    pub path: String,
    pub bytes: Vec<u8>,
    pub collection: String,
    /// Instead of the title that the document gives itself.
    pub title: Option<String>,
    /// The time of the adding.
    pub now: DateTime<Utc>,
}

/// A document that was parsed and divided, not kept yet; plain data, so that a run can hold it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prepared {
    pub id: String,
    pub collection: String,
    pub path: String,
    pub title: String,
    pub hash: String,
    pub version: u64,
    pub bytes: u64,
    pub parsed: Parsed,
    pub chunks: Chunks,
    pub now: DateTime<Utc>,
}

/// A parent's range in characters.
pub(crate) struct ParentRange {
    pub first: usize,
    pub past: usize,
    pub page: Option<u32>,
    pub section: Vec<String>,
}

/// What an item of the index carries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Payload {
    pub document: String,
    pub parent: usize,
    /// In characters of the document's text.
    pub start: usize,
    pub end: usize,
    pub page: Option<u32>,
    pub section: Vec<String>,
}

/// Returns the hash of a file's bytes.
pub(crate) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Returns the id of a document: the same for the same place in the same collection.
pub(crate) fn id(scope: &crate::Scope, collection: &str, path: &str) -> String {
    // A name space of our own.
    const DOCUMENTS: uuid::Uuid = uuid::Uuid::from_u128(0x6f1d_3c0a_59e2_4b7e_9a54_70d2_41d8_0c19);
    let name = [scope.tenant(), scope.owner(), collection, path].join("\u{1}");
    uuid::Uuid::new_v5(&DOCUMENTS, name.as_bytes()).simple().to_string()
}

/// Returns what stands for all by which an item is found.
fn says(item: &Item) -> String {
    let fields: Vec<&str> = item.fields.iter().map(|field| field.text.as_str()).collect();
    let all = json!([fields, item.attributes]).to_string();
    blake3::hash(all.as_bytes()).to_hex().chars().take(32).collect()
}

impl Prepared {
    pub(crate) fn new(
        id: String,
        input: Input,
        parsed: Parsed,
        version: u64,
        before: &HashSet<String>,
    ) -> Self {
        let name = input.path.rsplit(['/', '\\']).next().unwrap_or(&input.path).to_owned();
        let title = input.title.or_else(|| parsed.title.clone()).unwrap_or(name);
        let title: String = title.chars().take(300).collect();
        let chunks = chunk(&parsed, &title, Options::default(), before);
        Self {
            id,
            collection: input.collection,
            path: input.path,
            title,
            hash: hash(&input.bytes),
            version,
            bytes: input.bytes.len() as u64,
            parsed,
            chunks,
            now: input.now,
        }
    }

    /// Returns the beginning of the text, from which it is described.
    pub fn beginning(&self) -> String {
        self.parsed.text.chars().take(BEGINNING).collect()
    }

    /// Returns the texts that an embedding model is asked, each once, with their hashes.
    pub fn meanings(&self) -> Vec<(ContentHash, String)> {
        let mut seen = BTreeSet::new();
        let texts = self.chunks.children.iter().map(|child| child.indexed(&self.parsed.text));
        texts
            .map(|text| (content_hash(&text), text))
            .filter(|(hash, _)| seen.insert(*hash))
            .collect()
    }

    /// Returns the document's items, named by what is searched of them: those of two versions that are alike have one name.
    pub(crate) fn items(&self) -> Vec<Item> {
        let mut places = Places::new(&self.parsed.text);
        let mut equal: HashMap<String, usize> = HashMap::new();
        let items = self.chunks.children.iter().map(|child| {
            let start = places.character(child.start);
            let end = places.character(child.end);
            let payload = Payload {
                document: self.id.clone(),
                parent: child.parent,
                start,
                end,
                page: child.page,
                section: child.section.clone(),
            };
            let text = self.parsed.text.get(child.start..child.end).unwrap_or_default();
            let mut item = Item::new(self.id.clone(), text)
                .with_field(0.5, child.context.clone())
                .with_parent(self.id.clone())
                .with_attribute("collection", &self.collection)
                .with_attribute("format", self.parsed.format.as_str())
                .with_payload(json!(payload));
            for key in self.parsed.authors.iter().flat_map(|name| people::keys(name)) {
                item = item.with_attribute(key, people::IS);
            }
            if let Some(section) = child.section.last() {
                item = item.with_attribute("section", section.to_lowercase());
            }
            item.meaning = Some(child.indexed(&self.parsed.text));
            item.at = Some(self.now);
            let says = says(&item);
            let before = equal.entry(says.clone()).or_default();
            item.id = format!("{}/{says}/{before}", self.id);
            *before += 1;
            item
        });
        items.collect()
    }

    pub(crate) fn parents(&self) -> Vec<ParentRange> {
        let mut places = Places::new(&self.parsed.text);
        let ranges = self.chunks.parents.iter().map(|parent| ParentRange {
            first: places.character(parent.start),
            past: places.character(parent.end),
            page: parent.page,
            section: parent.section.clone(),
        });
        ranges.collect()
    }
}
