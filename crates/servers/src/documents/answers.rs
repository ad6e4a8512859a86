//! What the tools are asked and answer, as data.

use chrono::{DateTime, Utc};
use perihelion_documents::{Document, Filters, Passage, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to add.
#[derive(Deserialize, JsonSchema)]
pub(super) struct AddDocument {
    /// A file, relative to the served directory where there is one: PDF, DOCX, PPTX, XLSX, ODT, RTF, EPUB, EML, CSV, HTML, Markdown or text.
    pub path: Option<String>,
    /// The document's text (Markdown or plain), where it is no file.
    pub text: Option<String>,
    /// Its title; by default the one that it gives itself. A text of the same title replaces the former one.
    pub title: Option<String>,
}

/// A document, as lists show it.
#[derive(Serialize, JsonSchema)]
pub(super) struct Listed {
    /// Id to read, search and delete it by.
    pub document: String,
    pub title: String,
    pub path: String,
    pub collection: String,
    /// Names of the people who wrote it, as its properties say.
    pub authors: Vec<String>,
    /// Such as pdf or docx.
    pub format: String,
    /// Counts its changes, from 1.
    pub version: u64,
    /// Characters of its text.
    pub characters: u64,
    /// What it says, where a model described it.
    pub summary: Option<String>,
    /// What a reader should know about how its text was got.
    pub warnings: Vec<String>,
    pub changed_at: DateTime<Utc>,
}

/// What became of a document that was added.
#[derive(Serialize, JsonSchema)]
pub(super) struct AddedDocument {
    #[serde(flatten)]
    pub document: Listed,
    /// It was there already, byte for byte.
    pub unchanged: bool,
    /// Why it is found by words alone; null when it is found by meaning too.
    pub by_words_only: Option<String>,
    /// Why no model said what it is about; null when one did.
    pub not_described: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Documents {
    pub documents: Vec<Listed>,
}

/// What to look for.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SearchDocuments {
    /// The question, or words of its answer.
    pub query: String,
    /// What documents must be to be searched at all.
    pub filters: Option<Filters>,
    /// Hits wanted at most: 8 if left out, 1,000 at most.
    pub limit: Option<usize>,
    /// One hit for each passage that holds hits, with the place of that passage as `parent`.
    #[serde(default)]
    pub parents: bool,
}

/// A hit, and the passage around it.
#[derive(Serialize, JsonSchema)]
pub(super) struct Hit {
    #[serde(flatten)]
    pub source: Source,
    /// Where the passage lies that is to be read around it; only where `parents` was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<CharRange>,
}

/// Characters from `start` to `end`.
#[derive(Serialize, JsonSchema)]
// The name that the schema has had since it was first pinned.
#[schemars(rename = "Place")]
pub(super) struct CharRange {
    pub start: usize,
    pub end: usize,
}

impl Hit {
    /// Finds the range of a passage by its quote; `None` if the passage contains the quote twice.
    pub fn of_passage(passage: Passage) -> Self {
        let Passage { source, text, .. } = passage;
        let mut found = text.match_indices(&source.quote).map(|(at, _)| at);
        let only = found.next().filter(|_| found.next().is_none());
        let before = only.map(|at| text[..at].chars().count());
        let start = before.and_then(|before| source.start.checked_sub(before));
        let parent = start.map(|start| CharRange { start, end: start + text.chars().count() });
        Self { source, parent }
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Hits {
    /// Best first.
    pub hits: Vec<Hit>,
    /// Why only words counted: the embeddings endpoint failed, or no document has its vectors. Null otherwise.
    pub by_words_only: Option<String>,
}

/// What to read.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ReadDocument {
    /// Id of the document.
    pub document: String,
    /// First character, from 0; its beginning if left out.
    pub start: Option<usize>,
    /// Character behind the last one; as far as one answer reaches if left out.
    pub end: Option<usize>,
}

/// What to delete.
#[derive(Deserialize, JsonSchema)]
pub(super) struct DeleteDocument {
    /// Id of the document.
    pub document: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Deleted")]
pub(super) struct DeletedDocument {
    pub document: String,
    pub title: String,
    pub deleted: bool,
}

impl From<Document> for Listed {
    fn from(document: Document) -> Self {
        Self {
            document: document.id,
            title: document.title,
            path: document.path,
            collection: document.collection,
            authors: document.authors,
            format: document.format,
            version: document.version,
            characters: document.characters,
            summary: document.description.map(|description| description.summary),
            warnings: document.warnings,
            changed_at: document.changed_at,
        }
    }
}
