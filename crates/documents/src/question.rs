//! Questions to the documents of a scope: the text, the filter, and the order of the answers.

use std::collections::BTreeSet;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use perihelion_parse::Format;
use perihelion_recall::words::{Language, split};
use perihelion_recall::{Filter, Weights};

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

#[derive(Clone, Debug)]
pub struct Query {
    pub text: String,
    pub filters: Filters,
    /// The weights of keyword and vector search; by default the library's.
    pub weights: Option<Weights>,
    pub limit: usize,
}

impl Query {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), filters: Filters::default(), weights: None, limit: PASSAGES }
    }
}

/// Returns the words of a text without the stop words of its language; all words of a text that has no others.
pub fn significant_words(text: &str) -> BTreeSet<String> {
    let language = Language::of(text);
    let (stop, significant): (BTreeSet<String>, BTreeSet<String>) =
        split(text).into_iter().partition(|word| language.is_empty_word(word));
    if significant.is_empty() { stop } else { significant }
}

/// Returns the stored name of a format: `markdown` for `md`.
fn format(wanted: &str) -> String {
    let known = Format::by_name(&format!("a.{wanted}"));
    known.map_or_else(|| wanted.to_lowercase(), |format| format.as_str().to_owned())
}

pub(crate) fn filter(filters: &Filters) -> Filter {
    let section = filters.section.as_ref().map(|section| section.to_lowercase());
    let attributes = [
        ("collection", filters.collection.clone()),
        ("format", filters.format.as_deref().map(format)),
        ("section", section),
    ];
    let person = filters.person.as_deref().map(|name| (person_key(name), IS.to_owned()));
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

/// The value of an attribute with a name: a document has many authors, so a name is the attribute and not its value.
pub(crate) const IS: &str = "yes";

/// Returns the attribute of a name in any spelling.
pub(crate) fn person_key(name: &str) -> String {
    format!("person {}", words(name).join(" "))
}

/// Returns the attributes that an author is found by: the name and its words.
pub(crate) fn person_keys(name: &str) -> Vec<String> {
    let mut keys: Vec<String> = words(name).iter().map(|word| person_key(word)).collect();
    keys.push(person_key(name));
    keys
}

fn words(name: &str) -> Vec<String> {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Something that ranks passages by how well they answer a question, usually a model.
#[async_trait]
pub trait Reranker: Send + Sync {
    /// Returns the numbers of the passages, counted from 1, best first; `None` if it cannot rank.
    async fn rank(&self, question: &str, passages: &[String]) -> Option<Vec<usize>>;
}

/// Returns the order that a ranking asks for: places of passages, each once.
///
/// Numbers that name no passage and repetitions are dropped; passages that it leaves out follow in the order in which
/// they were. An empty ranking counts as none.
pub fn reordered(ranking: Option<Vec<usize>>, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::with_capacity(count);
    for number in ranking.unwrap_or_default() {
        let place = number.wrapping_sub(1);
        if place < count && !order.contains(&place) {
            order.push(place);
        }
    }
    let rest: Vec<usize> = (0..count).filter(|place| !order.contains(place)).collect();
    order.extend(rest);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_full_and_by_a_word_in_any_spelling() {
        let keys = person_keys("Ann  O'Hara");
        for given in ["ann o'hara", "ANN O HARA", "Ann", "hara"] {
            assert!(keys.contains(&person_key(given)), "{given}: {keys:?}");
        }
        assert!(!keys.contains(&person_key("Hara Ann")));
    }
}

#[cfg(test)]
mod rerank_tests {
    use super::reordered;

    #[test]
    fn a_ranking_of_any_kind_leaves_every_passage_there_once() {
        assert_eq!(reordered(Some(vec![3, 1, 2]), 3), [2, 0, 1]);
        assert_eq!(reordered(Some(vec![2, 2, 9, 0]), 3), [1, 0, 2]);
        assert_eq!(reordered(Some(Vec::new()), 3), [0, 1, 2]);
        assert_eq!(reordered(None, 3), [0, 1, 2]);
    }
}
