//! The code that agents with passages share: the passages, the ranking, the answer with its citations.
//!
//! Invariant: an answer rests on passages alone, and each `[n]` in it names one. Deliberately absent: where passages come
//! from, which is the business of each kind.

mod answer;
mod support;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lenient;
use super::pipeline::QuoteLocation;

pub(super) use self::answer::{NOTHING, answer, finding, nothing, rerank, write};

perihelion_engine::graph_state! {
    /// The state that the stages pass on.
    pub struct Work, update WorkUpdate, version 1 {
        /// Best first.
        passages: Vec<Passage> => overwrite,
        /// Why there are no findings, if the search failed in part.
        remarks: Vec<String> => overwrite,
    }
}

/// Ranked passages, and the ones that are read.
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
    /// The confidence, in percent, with which the quote was recognized in a picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recognized: Option<u8>,
    pub score: f64,
    /// The passage with the quote, if the server names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Range>,
    /// The text around the quote, if it was read.
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

impl Passage {
    /// Reads a hit of a search; third-party servers can leave out unknown fields.
    pub fn of_hit(hit: &Value) -> Option<Self> {
        let mut passage = lenient::read::<Self>(hit)?;
        passage.quote = passage.quote.trim().to_owned();
        (!passage.quote.is_empty()).then_some(passage)
    }

    /// Returns its place, if the server counts characters.
    pub fn place(&self) -> Option<QuoteLocation> {
        Some(QuoteLocation {
            document: self.document.clone(),
            title: match self.how() {
                Some(how) => format!("{}, {how}", self.title),
                None => self.title.clone(),
            },
            start: self.start?,
            end: self.end?,
            page: self.page,
            section: self.section.clone(),
        })
    }

    /// Returns how the quote was read, if it was not written as text.
    fn how(&self) -> Option<String> {
        self.recognized.map(|percent| format!("recognized text ({percent} %)"))
    }

    /// Describes its place for an answer's reader.
    pub fn reference(&self) -> String {
        let mut parts =
            vec![if self.title.is_empty() { self.document.clone() } else { self.title.clone() }];
        parts.extend(self.page.map(|page| format!("page {page}")));
        parts.extend(self.section.clone());
        parts.extend(self.how());
        if let (Some(start), Some(end)) = (self.start, self.end) {
            parts.push(format!("characters {start}–{end}"));
        }
        parts.join(", ")
    }

    /// Returns whether it is the same place as another one, or within it or in the same passage.
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
