//! What kinds of agents share that answer from passages: what a passage is, the ranking, the answer with its citations.
//!
//! Invariant: an answer rests on passages alone, and each `[n]` in it names one. Deliberately absent: where passages come
//! from, which is the business of each kind.

mod answer;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::pipeline::QuoteLocation;

pub(super) use self::answer::{NOTHING, answer, finding, nothing, rerank, write};

perihelion_engine::graph_state! {
    /// What the stages hand on.
    pub struct Work, update WorkUpdate, version 1 {
        /// Best first.
        passages: Vec<Passage> => overwrite,
        /// Why nothing was found, where the search failed in part.
        remarks: Vec<String> => overwrite,
    }
}

/// Passages that are ranked, and those of them that are read.
pub(super) const CANDIDATES: usize = 20;
const READ: usize = 8;

/// A place in a document; `quote` is its text between `start` and `end`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Passage {
    pub document: String,
    pub title: String,
    pub page: Option<u64>,
    pub section: Option<String>,
    pub start: Option<u64>,
    pub end: Option<u64>,
    pub quote: String,
    pub score: f64,
    /// The passage that the quote stands in, where the server says so.
    #[serde(deserialize_with = "if_readable", skip_serializing_if = "Option::is_none")]
    pub parent: Option<Range>,
    /// The text around the quote, where it was read.
    #[serde(rename = "around")]
    pub context: Option<String>,
    /// Which of the sides it belongs to that a task compares.
    pub side: usize,
}

/// Characters from `start` to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    pub start: u64,
    pub end: u64,
}

/// Servers of others may mean something else by the name.
fn if_readable<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Range>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

impl Passage {
    /// Reads a hit of a search; servers of others may leave out what they do not know.
    pub fn of_hit(hit: &Value) -> Option<Self> {
        let mut passage: Self = serde_json::from_value(hit.clone()).ok()?;
        passage.quote = passage.quote.trim().to_owned();
        (!passage.quote.is_empty()).then_some(passage)
    }

    /// Returns its place, where the document's keeper counts characters.
    pub fn place(&self) -> Option<QuoteLocation> {
        Some(QuoteLocation {
            document: self.document.clone(),
            title: self.title.clone(),
            start: self.start?,
            end: self.end?,
            page: self.page,
            section: self.section.clone(),
        })
    }

    /// Says where it stands, as an answer's reader is shown it.
    pub fn reference(&self) -> String {
        let mut parts =
            vec![if self.title.is_empty() { self.document.clone() } else { self.title.clone() }];
        parts.extend(self.page.map(|page| format!("page {page}")));
        parts.extend(self.section.clone());
        if let (Some(start), Some(end)) = (self.start, self.end) {
            parts.push(format!("characters {start}–{end}"));
        }
        parts.join(", ")
    }

    /// Tells whether it is the same place as another one, or lies in it or in the same passage.
    pub fn overlaps(&self, other: &Self) -> bool {
        if self.parent.is_some() && other.parent.is_some() {
            return self.document == other.document && self.parent == other.parent;
        }
        match (self.start, self.end, other.start, other.end) {
            (Some(start), Some(end), Some(first), Some(past)) => {
                self.document == other.document && start < past && first < end
            }
            _ => self.document == other.document && self.quote == other.quote,
        }
    }
}
