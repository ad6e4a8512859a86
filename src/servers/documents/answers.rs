//! What the tools are asked and answer, as data.

use chrono::{DateTime, Utc};
use perihelion_documents::{Document, Filters, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to add.
#[derive(Deserialize, JsonSchema)]
pub(super) struct AddDocument {
    /// A file, relative to the served directory where there is one: PDF, DOCX, PPTX, XLSX, CSV, HTML, Markdown or text.
    #[serde(default)]
    pub path: Option<String>,
    /// The document's text (Markdown or plain), where it is no file.
    #[serde(default)]
    pub text: Option<String>,
    /// Its title; by default the one that it gives itself. A text of the same title replaces the former one.
    #[serde(default)]
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
    #[serde(default)]
    pub filters: Option<Filters>,
    /// Hits wanted at most: 8 if left out, 50 at most.
    #[serde(default)]
    pub limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Hits {
    /// Best first.
    pub hits: Vec<Source>,
}

/// What to read.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ReadDocument {
    /// Id of the document.
    pub document: String,
    /// First character, from 0; its beginning if left out.
    #[serde(default)]
    pub start: Option<usize>,
    /// Character behind the last one; as far as one answer reaches if left out.
    #[serde(default)]
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
