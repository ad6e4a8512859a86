//! The metadata of a document.

use chrono::{DateTime, Utc};
use perihelion_database::Row;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A model's description of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Description {
    /// The document's title, as a reader would name it.
    #[schemars(length(max = 200))]
    pub title: String,
    /// What it says, in two or three sentences.
    #[schemars(length(max = 600))]
    pub summary: String,
    /// What it is in one or two words, such as report, contract or letter.
    #[schemars(length(max = 60))]
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is about.
    #[schemars(length(max = 8), inner(length(max = 60)))]
    pub topics: Vec<String>,
}

/// A document that is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    pub id: String,
    pub collection: String,
    /// Where it came from.
    pub path: String,
    pub title: String,
    /// Names of the people who wrote it, as its properties say.
    pub authors: Vec<String>,
    pub format: String,
    /// Counts from 1; grows with each change of its bytes.
    pub version: u64,
    /// Bytes of its file.
    pub bytes: u64,
    /// Characters of its text.
    pub characters: u64,
    /// Pages, slides or sheets; 0 for a format without them.
    #[serde(default)]
    pub pages: u64,
    /// Pieces of it that can be found.
    pub chunks: u64,
    pub description: Option<Description>,
    /// What a reader should know about how its text was got.
    pub warnings: Vec<String>,
    pub added_at: DateTime<Utc>,
    pub changed_at: DateTime<Utc>,
    /// Of the file's bytes.
    pub hash: String,
}

/// The columns of a document, in the order in which [`read`] takes them.
pub(crate) const COLUMNS: &str = "id, collection, path, title, format, version, bytes, characters, chunks, \
     description, warnings, added_at, changed_at, hash, authors, \
     (SELECT count(*) FROM document_page p WHERE p.tenant = document.tenant AND p.owner = document.owner \
     AND p.id = document.id) AS pages";

pub(crate) fn read(row: &Row) -> Result<Document> {
    let id: String = row.get(0)?;
    let count = |column: usize| row.get::<i64>(column).map(|value| value.max(0).unsigned_abs());
    let damaged =
        |error: serde_json::Error| Error::Damaged { id: id.clone(), what: error.to_string() };
    let description: Option<serde_json::Value> = row.get(9)?;
    let description = description.map(serde_json::from_value).transpose().map_err(damaged)?;
    let warnings = serde_json::from_value(row.get::<serde_json::Value>(10)?).map_err(damaged)?;
    let authors = serde_json::from_value(row.get::<serde_json::Value>(14)?).map_err(damaged)?;
    Ok(Document {
        authors,
        collection: row.get(1)?,
        path: row.get(2)?,
        title: row.get(3)?,
        format: row.get(4)?,
        version: count(5)?,
        bytes: count(6)?,
        characters: count(7)?,
        chunks: count(8)?,
        pages: count(15)?,
        description,
        warnings,
        added_at: row.get(11)?,
        changed_at: row.get(12)?,
        hash: row.get(13)?,
        id,
    })
}
