//! Questions to the documents of a scope.

use chrono::{DateTime, Utc};
use perihelion_parse::Format;
use perihelion_recall::{Filter, Weights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::people;

/// Parents that are read.
const PASSAGES: usize = 8;

/// What a document must be to be found at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Filters {
    /// Name of the collection.
    pub collection: Option<String>,
    /// Ids of documents.
    pub documents: Vec<String>,
    /// Format, such as pdf or docx; endings of files are understood.
    pub format: Option<String>,
    /// Title of the section, in full.
    pub section: Option<String>,
    /// Name of an author, in full or one word of it.
    pub person: Option<String>,
    /// Changed at this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Changed before this time.
    pub until: Option<DateTime<Utc>>,
}

/// A question to the documents of a scope.
#[derive(Clone, Debug)]
pub struct Query {
    pub text: String,
    pub filters: Filters,
    /// How much words and meaning count; as the library has it where nothing is said.
    pub weights: Option<Weights>,
    /// Passages wanted at most.
    pub limit: usize,
}

impl Query {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), filters: Filters::default(), weights: None, limit: PASSAGES }
    }
}

/// Returns the name under which a format is kept: `markdown` for `md`.
fn format(wanted: &str) -> String {
    let known = Format::by_name(&format!("a.{wanted}"));
    known.map_or_else(|| wanted.to_lowercase(), |format| format.as_str().to_owned())
}

/// Returns what an item must be to pass.
pub(crate) fn filter(filters: &Filters) -> Filter {
    let section = filters.section.as_ref().map(|section| section.to_lowercase());
    let attributes = [
        ("collection", filters.collection.clone()),
        ("format", filters.format.as_deref().map(format)),
        ("section", section),
    ];
    let person = filters.person.as_deref().map(|name| (people::key(name), people::IS.to_owned()));
    Filter {
        attributes: attributes
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .chain(person)
            .collect(),
        parents: filters.documents.clone(),
        since: filters.since,
        until: filters.until,
    }
}
