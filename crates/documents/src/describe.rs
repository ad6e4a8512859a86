//! What a model says a document is.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A model's description of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Description {
    /// The document's title, as a reader would name it.
    pub title: String,
    /// What it says, in two or three sentences.
    pub summary: String,
    /// What it is in one or two words, such as report, contract or letter.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is about.
    pub topics: Vec<String>,
}

/// Something that describes documents, usually a model.
#[async_trait]
pub trait Describer: Send + Sync {
    /// Describes a document by the beginning of its text; none where it cannot, which costs the document nothing.
    async fn describe(&self, path: &str, beginning: &str) -> Option<Description>;
}

/// Characters of a text that its description is made from.
pub(crate) const BEGINNING: usize = 6_000;
