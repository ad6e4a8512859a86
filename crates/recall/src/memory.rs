//! Keyword search in memory, for tools, endpoints and schemas.

use std::collections::{BTreeMap, BTreeSet};

use crate::bm25::{Occurrences, Posting, Scored, Statistics, join, rank};
use crate::posting::QUARTERS;
use crate::words::{Language, beginning, related, terms, wanted};
use crate::{Error, Item, Result};

/// The weight of an occurrence of a related word.
pub(crate) const RELATED: f64 = 0.5;

/// Texts by number, findable by their words: one space of an index, without scopes, for one owner.
#[derive(Clone, Debug, Default)]
pub struct WordIndex {
    statistics: Statistics,
    languages: BTreeSet<Language>,
    postings: BTreeMap<String, Vec<Posting>>,
    next: u64,
}

impl WordIndex {
    /// Adds a text in weighted parts and returns its number: 0, 1, 2, …
    pub fn add(&mut self, fields: &[(f64, &str)]) -> u64 {
        let number = self.next;
        let (language, counts, length) = counted(fields);
        self.languages.insert(language);
        for (term, count) in counts {
            self.postings.entry(term).or_default().push(Posting { item: number, count, length });
        }
        self.next += 1;
        self.statistics.items += 1;
        self.statistics.length += u64::from(length);
        number
    }

    /// Ranks the texts that share words with a question, given in weighted parts.
    pub fn rank(&self, question: &[(f64, &str)]) -> Vec<Scored> {
        rank(self.statistics, &self.occurrences(question), |_| true, usize::MAX)
    }

    pub fn len(&self) -> usize {
        self.statistics.items as usize
    }

    pub fn is_empty(&self) -> bool {
        self.statistics.items == 0
    }

    fn occurrences(&self, question: &[(f64, &str)]) -> Vec<Occurrences> {
        let languages: Vec<Language> = self.languages.iter().copied().collect();
        let asked = wanted(question, &languages);
        asked.iter().map(|word| self.occurrences_of(word)).collect()
    }

    fn occurrences_of(&self, word: &crate::words::QueryTerm) -> Occurrences {
        let at = |term: &String| self.postings.get(term).cloned().unwrap_or_default();
        let exact: Vec<Posting> = word.terms.iter().flat_map(at).collect();
        if !exact.is_empty() {
            return Occurrences { weight: word.weight, postings: join(exact), likeness: 1.0 };
        }
        let mut near = BTreeSet::new();
        for wanted in &word.terms {
            let Some(start) = beginning(wanted) else { continue };
            let begin_alike = self.postings.range(start.clone()..);
            let begin_alike = begin_alike.take_while(|(term, _)| term.starts_with(&start));
            near.extend(begin_alike.map(|(term, _)| term).filter(|term| related(wanted, term)));
        }
        let postings = near.into_iter().flat_map(at).collect();
        Occurrences { weight: word.weight, postings: join(postings), likeness: RELATED }
    }
}

/// Returns the language of a text in weighted parts, its terms with their counts, and its length.
pub(crate) fn counted(fields: &[(f64, &str)]) -> (Language, BTreeMap<String, u32>, u32) {
    let texts: Vec<&str> = fields.iter().map(|(_, text)| *text).collect();
    let language = Language::of(&texts.join("\n"));
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for (weight, text) in fields {
        let quarters = (weight.clamp(0.25, 16.0) * QUARTERS).round() as u32;
        for term in terms(text, language) {
            let count = counts.entry(term).or_default();
            *count = count.saturating_add(quarters);
        }
    }
    let length = counts.values().fold(0_u32, |sum, count| sum.saturating_add(*count));
    (language, counts, length)
}

pub(crate) fn fields_of(item: &Item) -> Vec<(f64, &str)> {
    item.fields.iter().map(|field| (field.weight, field.text.as_str())).collect()
}

pub(crate) fn check_names(kind: &str, items: &[Item]) -> Result<()> {
    if kind.is_empty() || items.iter().any(|item| item.id.is_empty()) {
        Err(Error::Unnamed)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(texts: &[(&str, &str)]) -> WordIndex {
        let mut index = WordIndex::default();
        for (name, description) in texts {
            index.add(&[(3.0, name), (1.0, description)]);
        }
        index
    }

    fn found(index: &WordIndex, query: &str) -> Vec<u64> {
        index.rank(&[(1.0, query)]).into_iter().map(|one| one.item).collect()
    }

    #[test]
    fn rare_words_names_and_short_texts_weigh_more() {
        let index = index(&[
            ("list_orders", "Lists the orders of a customer."),
            ("convertCurrency", "Converts an amount from one currency to another."),
            ("list_customers", "Lists the customers."),
            ("ledger", "Amounts of a customer in every currency there is, order by order."),
        ]);
        assert_eq!(found(&index, "convert 20 euros into another currency")[0], 1);
        assert_eq!(found(&index, "Which orders are there?")[0], 0);
        assert_eq!(found(&index, "customer")[0], 2, "in the name of a short text");
    }

    #[test]
    fn words_of_one_root_are_found_and_an_unknown_word_finds_related_ones() {
        let index = index(&[("a", "Scheduling of deployments."), ("b", "Runs a program, once.")]);
        assert_eq!(found(&index, "deploy"), [0]);
        assert_eq!(found(&index, "schedules"), [0]);
        assert_eq!(found(&index, "programmatic"), [1]);
    }

    #[test]
    fn equal_texts_stay_in_their_order_and_no_shared_word_gives_no_result() {
        let index = index(&[("x", "reads mail"), ("x", "reads mail"), ("y", "writes mail")]);
        assert_eq!(found(&index, "mail"), [0, 1, 2]);
        assert!(found(&index, "spreadsheet").is_empty());
        assert!(found(&index, "the of and").is_empty(), "words that say nothing");
        assert!(found(&WordIndex::default(), "mail").is_empty());
    }
}
