//! A word index: which of many short texts a query is about, by Okapi BM25.
//!
//! S. Robertson and H. Zaragoza, “The Probabilistic Relevance Framework: BM25 and Beyond”, Foundations and Trends in
//! Information Retrieval 3 (2009), sections 3.4 (BM25) and 3.6 (weighted fields). Pure and small: the texts are names and
//! descriptions of at most a few thousand tools, and the same texts rank alike in every process.

use std::collections::{BTreeMap, BTreeSet};

use super::words::{relation, words};

/// How soon further occurrences of a word stop counting.
const K1: f64 = 1.2;

/// How much longer texts are held against themselves.
const B: f64 = 0.75;

/// Distinct words of a query that count; a longer one is a document, and its first words say what it is about.
const QUERY_WORDS: usize = 200;

/// A text to be found: parts of it, each with how much it counts.
pub(super) type Fields<'a> = [(f64, &'a str)];

/// Texts by number, findable by their words.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Weighted length of each text.
    lengths: Vec<f64>,
    /// The texts in which a word stands, with its weighted count, in the order of the texts.
    postings: BTreeMap<String, Vec<(usize, f64)>>,
}

/// A text that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    /// Number of the text, in the order in which it was added.
    pub text: usize,
    /// In millionths, so that what differs in the last bit alone counts as equal.
    pub score: u64,
}

impl Index {
    /// Adds a text; its number is that of the texts before it.
    pub(super) fn add(&mut self, fields: &Fields<'_>) {
        let number = self.lengths.len();
        let mut counts: BTreeMap<String, f64> = BTreeMap::new();
        for (weight, text) in fields {
            for word in words(text) {
                *counts.entry(word).or_default() += weight;
            }
        }
        self.lengths.push(counts.values().sum());
        for (word, count) in counts {
            self.postings.entry(word).or_default().push((number, count));
        }
    }

    /// Returns the texts that share words with the query, best first; of equal ones the earlier first.
    pub(super) fn rank(&self, query: &Fields<'_>) -> Vec<Hit> {
        let mean = self.lengths.iter().sum::<f64>() / self.lengths.len().max(1) as f64;
        let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
        for (word, weight) in self.wanted(query) {
            let found = self.occurrences(&word);
            let (all, with) = (self.lengths.len() as f64, found.len() as f64);
            let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
            for (text, count) in found {
                let length = self.lengths.get(text).copied().unwrap_or_default() / mean;
                let fullness = count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length));
                *scores.entry(text).or_default() += weight * rarity * fullness;
            }
        }
        // A float to an integer saturates.
        let hit = |(text, score): (usize, f64)| Hit { text, score: (score * 1e6).round() as u64 };
        let mut hits: Vec<Hit> = scores.into_iter().map(hit).filter(|hit| hit.score > 0).collect();
        hits.sort_by_key(|hit| (std::cmp::Reverse(hit.score), hit.text));
        hits
    }

    /// Returns the query's distinct words, each with the weight of the weightiest field in which it stands.
    fn wanted(&self, query: &Fields<'_>) -> BTreeMap<String, f64> {
        let mut wanted: BTreeMap<String, f64> = BTreeMap::new();
        for (weight, text) in query {
            for word in words(text) {
                if wanted.len() < QUERY_WORDS || wanted.contains_key(&word) {
                    let known = wanted.entry(word).or_default();
                    *known = known.max(*weight);
                }
            }
        }
        wanted
    }

    /// Returns where a word or one related to it stands, as if they were one word.
    fn occurrences(&self, word: &str) -> BTreeMap<usize, f64> {
        let stem: String = word.chars().take(super::words::STEM).collect();
        let near = self.postings.range::<String, _>(&stem..);
        let near = near.take_while(|(other, _)| other.starts_with(&stem));
        let mut found = BTreeMap::new();
        for (other, places) in near {
            let weight = relation(word, other);
            for (text, count) in places.iter().filter(|_| weight > 0.0) {
                *found.entry(*text).or_default() += weight * count;
            }
        }
        found
    }

    /// Returns the numbers of all texts, those that the query finds first.
    pub(super) fn order(&self, query: &Fields<'_>) -> Vec<usize> {
        let found: Vec<usize> = self.rank(query).into_iter().map(|hit| hit.text).collect();
        let known: BTreeSet<usize> = found.iter().copied().collect();
        let rest = (0..self.lengths.len()).filter(|text| !known.contains(text));
        found.iter().copied().chain(rest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(texts: &[(&str, &str)]) -> Index {
        let mut index = Index::default();
        for (name, description) in texts {
            index.add(&[(3.0, name), (1.0, description)]);
        }
        index
    }

    fn found(index: &Index, query: &str) -> Vec<usize> {
        index.rank(&[(1.0, query)]).into_iter().map(|hit| hit.text).collect()
    }

    #[test]
    fn rare_words_names_and_short_texts_weigh_more() {
        let index = index(&[
            ("list_orders", "Lists the orders of a customer."),
            ("convertCurrency", "Converts an amount from one currency to another."),
            ("list_customers", "Lists the customers."),
            ("ledger", "Amounts of a customer in every currency there is, order by order."),
        ]);
        assert_eq!(found(&index, "convert 20 euros into another currency"), [1, 3]);
        assert_eq!(found(&index, "Which orders are there?")[0], 0);
        assert_eq!(found(&index, "customer")[0], 2, "in the name of a short text");
    }

    #[test]
    fn related_words_are_found_and_count_less() {
        let index = index(&[("a", "Scheduling of deployments."), ("b", "A deploy, once.")]);
        assert_eq!(found(&index, "deploy"), [1, 0]);
        assert_eq!(found(&index, "schedule"), [0]);
    }

    #[test]
    fn equal_texts_stand_in_their_order_and_no_shared_word_finds_nothing() {
        let index = index(&[("x", "reads mail"), ("x", "reads mail"), ("y", "writes mail")]);
        assert_eq!(found(&index, "mail"), [0, 1, 2]);
        assert!(found(&index, "spreadsheet").is_empty());
        assert!(found(&index, "the of and").is_empty(), "words that say nothing");
        assert!(found(&Index::default(), "mail").is_empty());
        assert_eq!(index.order(&[(1.0, "writes")]), [2, 0, 1]);
    }

    #[test]
    fn the_weight_of_a_part_of_the_query_counts() {
        let index = index(&[("a", "weather"), ("b", "calendar")]);
        let rank = |query: &Fields<'_>| index.rank(query)[0].text;
        assert_eq!(rank(&[(1.0, "weather"), (0.3, "calendar")]), 0);
        assert_eq!(rank(&[(0.3, "weather"), (1.0, "calendar")]), 1);
    }
}
