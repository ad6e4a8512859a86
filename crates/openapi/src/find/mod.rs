//! Finds the operations that fit a question.
//!
//! Enter at [`Finder::find`]. Questions name things and operations take ids, so the operations that yield the ids of those found are
//! added to them.

mod text;
mod words;
mod yields;

use crate::{Catalogue, Operation, Snippet};
use text::{Weighted, of_operation, of_snippet};
use words::WordIndex;
use yields::Yields;

/// Of how many found operations the path parameters are looked at.
const LOOKED_AT: usize = 6;
/// How many operations that yield their parameters are added, and how many that look things up by name.
const YIELDING: usize = 2;
const LOOKUPS: usize = 3;

/// An index over a catalogue.
pub struct Finder {
    operations: WordIndex,
    snippets: WordIndex,
    yields: Yields,
}

/// An operation that was found.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    pub operation: &'a Operation,
    /// Zero for one that was added.
    pub score: f64,
    /// It was added because it yields this path parameter of a better one.
    pub yields: Option<&'a str>,
}

impl Finder {
    /// Indexes a catalogue.
    #[must_use]
    pub fn new(catalogue: &Catalogue) -> Self {
        let index = |texts: &mut dyn Iterator<Item = Weighted>| {
            let mut index = WordIndex::default();
            for weighted in texts {
                let fields: Vec<(f64, &str)> =
                    weighted.iter().map(|(weight, text)| (*weight, text.as_str())).collect();
                index.add(&fields);
            }
            index
        };
        Self {
            operations: index(
                &mut catalogue
                    .operations
                    .iter()
                    .map(|operation| of_operation(catalogue, operation)),
            ),
            snippets: index(&mut catalogue.snippets.iter().map(of_snippet)),
            yields: Yields::new(catalogue),
        }
    }

    /// Returns at most `limit` operations, best first; those that yield path parameters follow what needs them.
    #[must_use]
    pub fn find<'a>(
        &self,
        catalogue: &'a Catalogue,
        question: &str,
        limit: usize,
    ) -> Vec<Found<'a>> {
        let ranked = self.operations.rank(&[(1.0, question)]);
        let mut found: Vec<(usize, Found<'a>)> = Vec::new();
        for (index, score) in ranked.iter().take(limit + YIELDING + LOOKUPS) {
            let Some(operation) = catalogue.operations.get(*index) else { continue };
            found.push((*index, Found { operation, score: *score, yields: None }));
        }
        let mut added: Vec<(usize, Found<'a>)> = Vec::new();
        let mut add = |index: usize, name: &'a str, most: usize| {
            let is_known = added.iter().any(|(other, _)| *other == index);
            if let (false, true, Some(operation)) =
                (is_known, added.len() < most, catalogue.operations.get(index))
            {
                added.push((index, Found { operation, score: 0.0, yields: Some(name) }));
            }
        };
        let yielding = YIELDING.min(limit / 4);
        for (_, known) in found.iter().take(LOOKED_AT) {
            for (name, index) in self.yields.of(known.operation) {
                add(index, name, yielding);
            }
        }
        if has_names(question) {
            let lookups = LOOKUPS.min(limit / 4);
            for index in self.yields.lookups().take(lookups) {
                add(index, "id", yielding + lookups);
            }
        }
        found.retain(|(index, _)| !added.iter().any(|(other, _)| other == index));
        found.truncate(limit.saturating_sub(added.len()));
        found.into_iter().chain(added).map(|(_, found)| found).collect()
    }

    /// Returns at most `limit` passages of documentation, best first.
    #[must_use]
    pub fn snippets<'a>(
        &self,
        catalogue: &'a Catalogue,
        question: &str,
        limit: usize,
    ) -> Vec<&'a Snippet> {
        let ranked = self.snippets.rank(&[(1.0, question)]);
        ranked.iter().take(limit).filter_map(|(index, _)| catalogue.snippets.get(*index)).collect()
    }
}

/// Returns whether a question speaks of things by their own names: words in quotes, or with a capital in the middle of a sentence.
fn has_names(question: &str) -> bool {
    let mut is_start = true;
    for word in question.split_whitespace() {
        let first = word.chars().find(|c| c.is_alphanumeric());
        let is_quoted = word.starts_with(['"', '\'', '“', '«']);
        if is_quoted
            || (!is_start
                && first.is_some_and(char::is_uppercase)
                && word.chars().any(char::is_lowercase))
        {
            return true;
        }
        is_start = word.ends_with(['.', '?', '!']);
    }
    false
}
