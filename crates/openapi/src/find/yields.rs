//! The operations that yield the value of a path parameter: a search, or the list of its objects.

use std::collections::HashMap;

use super::text::stems;
use crate::{Catalogue, Operation};

/// Segments of operations that look things up by what people call them.
const SEARCHES: [&str; 5] = ["search", "find", "lookup", "query", "list"];

pub struct Yields {
    by_thing: HashMap<String, Vec<usize>>,
    /// Operations that look things up by name, the most needed ones first.
    pub lookups: Vec<usize>,
}

impl Yields {
    pub fn new(catalogue: &Catalogue) -> Self {
        let mut scored: HashMap<String, Vec<(i64, usize)>> = HashMap::new();
        for (index, operation) in
            catalogue.operations.iter().enumerate().filter(|(_, operation)| operation.is_read())
        {
            let segments: Vec<&str> =
                operation.path.split('/').filter(|segment| !segment.is_empty()).collect();
            let Some(last) = segments.last().filter(|last| !last.contains('{')) else { continue };
            let placeholders =
                segments.iter().filter(|segment| segment.contains('{')).count() as i64;
            let searches =
                segments.iter().any(|segment| SEARCHES.contains(&segment.to_lowercase().as_str()));
            let mut things = stems(last);
            // `/movies/search` looks up movies.
            if SEARCHES.contains(&last.to_lowercase().as_str())
                && let Some(before) =
                    segments.iter().rev().nth(1).filter(|before| !before.contains('{'))
            {
                things.extend(stems(before));
            }
            let score = if searches { 10 } else { 0 } - 3 * placeholders - segments.len() as i64;
            for thing in things {
                scored.entry(thing).or_default().push((score, index));
            }
        }
        let best = |mut list: Vec<(i64, usize)>| {
            list.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
            list.into_iter().map(|(_, index)| index).take(2).collect()
        };
        let by_thing = scored.into_iter().map(|(thing, list)| (thing, best(list))).collect();
        let mut yields = Self { by_thing, lookups: Vec::new() };
        let mut needed: HashMap<usize, usize> = HashMap::new();
        for operation in &catalogue.operations {
            for (_, index) in yields.of(operation) {
                *needed.entry(index).or_default() += 1;
            }
        }
        let is_search = |index: &usize| {
            let path = catalogue.operations[*index].path.to_lowercase();
            path.split('/').any(|segment| SEARCHES.contains(&segment))
        };
        yields.lookups = needed.keys().copied().filter(is_search).collect();
        yields.lookups.sort_by_key(|index| (std::cmp::Reverse(needed.get(index).copied()), *index));
        yields
    }

    /// Returns the path parameters of an operation with the best operation that yields each.
    pub fn of<'a>(&self, operation: &'a Operation) -> Vec<(&'a str, usize)> {
        let mut found = Vec::new();
        let segments: Vec<&str> = operation.path.split('/').collect();
        for name in operation.placeholders() {
            let placeholder = format!("{{{name}}}");
            let at = segments.iter().position(|segment| segment.contains(&placeholder));
            let before = at.and_then(|at| segments.get(at.checked_sub(1)?)).copied();
            let mut things = things(name, before.unwrap_or_default()).into_iter();
            let index = things.find_map(|thing| self.by_thing.get(&thing)?.first());
            found.extend(index.map(|index| (name, *index)));
        }
        found
    }
}

/// Names the object of a parameter: `movie_id`, or `id` after `/movies`.
fn things(name: &str, before: &str) -> Vec<String> {
    let words = stems(name).into_iter().rev().chain(stems(before).into_iter().rev());
    words.filter(|word| word != "id" && word != "name").collect()
}
