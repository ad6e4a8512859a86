//! Turns a file into stored parts: text, outline, parents, and items for the index.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::library::{KIND, check_collection};
use crate::question::{IS, person_keys};
use crate::segments::{Places, Range};
use crate::{Error, Library};
use perihelion_parse::Parsed;
use perihelion_parse::chunk::{Chunks, Options, chunk};
use perihelion_recall::words::ANALYSER;
use perihelion_recall::{ContentHash, Item, StoredIndex, content_hash};

/// Characters of a text that its description is made from.
const BEGINNING: usize = 6_000;

#[derive(Clone, Debug)]
pub struct Input {
    /// Its origin: a file's path, or a name for a text.
    pub path: String,
    pub bytes: Vec<u8>,
    pub collection: String,
    /// Instead of the title that the document gives itself.
    pub title: Option<String>,
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

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Payload {
    pub document: String,
    pub parent: usize,
    /// In characters of the document's text.
    pub start: usize,
    pub end: usize,
    pub page: Option<u32>,
    pub section: Vec<String>,
    /// As in [`crate::Source`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recognized: Option<u8>,
}

impl Payload {
    pub fn range(&self) -> Range {
        Range { document: self.document.clone(), start: self.start, end: self.end }
    }
}

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

/// Returns a digest of everything by which an item is found, and of the way in which its words are read.
fn says(item: &Item) -> String {
    let fields: Vec<&str> = item.fields.iter().map(|field| field.text.as_str()).collect();
    let all = json!([ANALYSER, fields, item.attributes]).to_string();
    blake3::hash(all.as_bytes()).to_hex().chars().take(32).collect()
}

/// Returns a title as it is stored: its first 300 characters.
pub fn stored_title(title: &str) -> String {
    title.chars().take(300).collect()
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
        let title = stored_title(&title);
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

    pub(crate) fn hashes(&self) -> Vec<ContentHash> {
        self.meanings().into_iter().map(|(hash, _)| hash).collect()
    }

    /// Returns the document's items, named by their searched content: equal items of two versions have the same name.
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
                recognized: self.parsed.recognized(&(child.start..child.end)),
            };
            let text = self.parsed.text.get(child.start..child.end).unwrap_or_default();
            let mut item = Item::new(self.id.clone(), text)
                .with_field(0.5, child.context.clone())
                .with_parent(self.id.clone())
                .with_attribute("collection", &self.collection)
                .with_attribute("format", self.parsed.format.as_str())
                .with_payload(json!(payload));
            for key in self.parsed.authors.iter().flat_map(|name| person_keys(name)) {
                item = item.with_attribute(key, IS);
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

    /// Returns the parents as rows, which count in characters.
    pub(crate) fn parents(&self) -> Vec<Json> {
        let mut places = Places::new(&self.parsed.text);
        let rows = self.chunks.parents.iter().enumerate().map(|(number, parent)| {
            let first = places.character(parent.start);
            let past = places.character(parent.end);
            json!({ "number": number, "first": first, "past": past, "page": parent.page, "section": parent.section })
        });
        rows.collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Parse,
    Describe,
    Embed { done: usize, of: usize },
    Keep,
}

impl Library {
    /// Parses and divides a document; chunks of its last version that still match stay unchanged.
    ///
    /// # Errors
    /// [`Error::Parse`], [`Error::Collection`], [`Error::Full`].
    pub async fn prepare(&self, input: Input) -> Result<Prepared, Error> {
        check_collection(&input.collection)?;
        let id = id(&self.scope, &input.collection, &input.path);
        if self.by_id(&id).await?.is_none() {
            self.check_new().await?;
        }
        let parsed = self.parser.parse(&input.path, &input.bytes).await?;
        let (version, before) = match self.by_id(&id).await? {
            Some(last) => (last.version + 1, self.pieces(&last.id).await?),
            None => (1, HashSet::new()),
        };
        let prepared = Prepared::new(id, input, parsed, version, &before);
        self.check_room(&prepared).await?;
        Ok(prepared)
    }

    /// Notes the attempt and claims the vectors of the chunks, so that they can be stored before the document.
    pub async fn stage(&self, prepared: &Prepared) -> Result<(), Error> {
        let hashes = prepared.hashes();
        let database = self.database();
        let mut transaction = database.begin().await?;
        transaction.execute(&self.attempt_of(prepared)).await?;
        let dropped =
            StoredIndex::claim_in(&mut transaction, &self.scope, &prepared.id, &hashes).await?;
        transaction.commit().await?;
        if dropped > 0 {
            self.index.database().scrub().await?;
        }
        Ok(())
    }

    async fn pieces(&self, id: &str) -> Result<HashSet<String>, Error> {
        let read = self.query(
            "SELECT i.payload FROM recall_item i JOIN recall_space s ON s.id = i.space
             WHERE s.tenant = $1 AND s.owner = $2 AND s.kind = $3 AND i.parent = $4",
        );
        let read = read.bind(KIND).bind(id);
        let body = self.body(id).await?;
        let rows = self.database().fetch_all(&read).await?;
        let mut ranges = Vec::new();
        for row in &rows {
            let payload: serde_json::Value = row.get(0)?;
            let payload = serde_json::from_value::<Payload>(payload).ok();
            ranges.extend(payload.map(|payload| (payload.start, payload.end)));
        }
        // In their order, so that the text is read once.
        ranges.sort_unstable();
        let mut places = Places::new(&body);
        let pieces = ranges.into_iter().filter_map(|(start, end)| places.part(start, end));
        Ok(pieces.map(str::to_owned).collect())
    }
}
