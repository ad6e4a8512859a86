//! Finds the operations that fit a question.
//!
//! Enter at [`Finder::find`]. Questions name things and operations take ids, so the operations that yield the ids of those found are
//! added to them.

mod question;
mod shape;
mod text;
mod words;
mod yields;

use crate::{Catalogue, Operation, Snippet};
use question::{Intent, Question};
use shape::Shape;
use text::{of_operation, of_snippet};
use words::WordIndex;
use yields::Yields;

/// Of how many found operations the path parameters are looked at.
const LOOKED_AT: usize = 6;
/// How many operations that yield their parameters are added, and how many that look things up by name.
const YIELDING: usize = 2;
const LOOKUPS: usize = 3;
/// How much words count that every operation could have: list, show, create.
const VERBS: f64 = 0.3;

pub struct Finder {
    operations: WordIndex,
    snippets: WordIndex,
    shapes: Vec<Shape>,
    yields: Yields,
}

#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    pub operation: &'a Operation,
    /// It yields this path parameter of a better one, and may be added for that.
    pub yields: Option<&'a str>,
}

impl Finder {
    pub fn new(catalogue: &Catalogue) -> Self {
        let operations = &catalogue.operations;
        Self {
            operations: operations.iter().map(|one| of_operation(catalogue, one)).collect(),
            snippets: catalogue.snippets.iter().map(of_snippet).collect(),
            shapes: operations.iter().map(Shape::new).collect(),
            yields: Yields::new(catalogue),
        }
    }

    /// Returns at most `limit` operations, best first; those that yield path parameters follow the ones that need them.
    pub fn find<'a>(
        &self,
        catalogue: &'a Catalogue,
        question: &str,
        limit: usize,
    ) -> Vec<Found<'a>> {
        let asked = Question::read(question);
        let ranked = self.ranked(&asked);
        let found = |(index, _): (usize, f64)| {
            let operation = catalogue.operations.get(index)?;
            Some((index, Found { operation, yields: None }))
        };
        let mut found: Vec<_> = ranked.into_iter().take(limit).filter_map(found).collect();
        let mut wanted: Vec<(usize, &'a str)> = Vec::new();
        let mut want = |index: usize, name: &'a str, most: usize| {
            if wanted.len() < most && wanted.iter().all(|(other, _)| *other != index) {
                wanted.push((index, name));
            }
        };
        let yielding = YIELDING.min(limit / 4);
        for (_, known) in found.iter().take(LOOKED_AT) {
            for (name, index) in self.yields.of(known.operation) {
                want(index, name, yielding);
            }
        }
        if has_names(question) {
            let lookups = LOOKUPS.min(limit / 4);
            for index in self.yields.lookups.iter().take(lookups) {
                want(*index, "id", yielding + lookups);
            }
        }
        // One that was found keeps its place; only the others take the places of the last.
        let mut added: Vec<Found<'a>> = Vec::new();
        let room = limit.saturating_sub(wanted.len());
        for (index, name) in wanted {
            let known = found.iter_mut().take(room).find(|(other, _)| *other == index);
            match (known, catalogue.operations.get(index)) {
                (Some((_, known)), _) => known.yields = Some(name),
                (None, Some(operation)) => added.push(Found { operation, yields: Some(name) }),
                (None, None) => {}
            }
        }
        found.truncate(limit.saturating_sub(added.len()));
        found.retain(|(_, found)| {
            !added.iter().any(|one| std::ptr::eq(one.operation, found.operation))
        });
        found.into_iter().map(|(_, found)| found).chain(added).collect()
    }

    /// Ranks the operations by the words that they share with a question and by the wanted action.
    fn ranked(&self, asked: &Question) -> Vec<(usize, f64)> {
        let things = asked.things.join(" ");
        let verbs = asked.verbs.join(" ");
        let mut ranked = self.operations.rank(&[(1.0, &things), (VERBS, &verbs)]);
        for (index, score) in &mut ranked {
            *score *= self.shapes.get(*index).map_or(1.0, |shape| shape.fit(asked));
        }
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let is_harmless = |(index, _): &(usize, f64)| {
            self.shapes.get(*index).is_none_or(|shape| !shape.is_destructive)
        };
        if asked.intent == Intent::Read
            && let Some(first) = ranked.iter().position(is_harmless)
        {
            ranked.get_mut(..=first).unwrap_or_default().rotate_right(1);
        }
        ranked
    }

    /// Returns at most `limit` passages of documentation, best first.
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
