//! An index in memory, for what a process knows anyway: tools, endpoints, schemas.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{PoisonError, RwLock};

use async_trait::async_trait;

use crate::{
    Error, Filter, Found, Hit, Index, Item, Scope, Search,
    bm25::{Occurrences, Posting, Scored, Statistics, join, rank},
    posting::QUARTERS,
    search::matches,
    words::{Language, beginning, related, terms, wanted},
};

/// What an occurrence of a related word counts.
pub(crate) const RELATED: f64 = 0.5;

/// Texts by number, findable by their words: one space of an index, without scopes, for who holds it alone.
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
        rank(self.statistics, &self.occurrences(question), |_| true)
    }

    /// Returns how many texts there are.
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

    fn occurrences_of(&self, word: &crate::words::Wanted) -> Occurrences {
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

    /// Takes a text out again, given as it was added.
    fn remove(&mut self, number: u64, fields: &[(f64, &str)]) {
        let (_, counts, length) = counted(fields);
        for term in counts.keys() {
            let Some(postings) = self.postings.get_mut(term) else { continue };
            postings.retain(|posting| posting.item != number);
            if postings.is_empty() {
                self.postings.remove(term);
            }
        }
        self.statistics.items -= 1;
        self.statistics.length -= u64::from(length);
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

/// Returns an item's weighted parts.
pub(crate) fn fields_of(item: &Item) -> Vec<(f64, &str)> {
    item.fields.iter().map(|field| (field.weight, field.text.as_str())).collect()
}

/// An index in memory, with the scopes of the stored one.
#[derive(Debug, Default)]
pub struct MemoryIndex {
    spaces: RwLock<BTreeMap<(Scope, String), Space>>,
}

#[derive(Debug, Default)]
struct Space {
    words: WordIndex,
    items: BTreeMap<u64, Item>,
    numbers: BTreeMap<String, u64>,
}

impl MemoryIndex {
    /// Makes an empty index.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Space {
    fn put(&mut self, item: &Item) {
        self.remove(&item.id);
        let number = self.words.add(&fields_of(item));
        self.items.insert(number, item.clone());
        self.numbers.insert(item.id.clone(), number);
    }

    fn remove(&mut self, id: &str) -> bool {
        let Some(number) = self.numbers.remove(id) else { return false };
        if let Some(item) = self.items.remove(&number) {
            self.words.remove(number, &fields_of(&item));
        }
        true
    }

    fn passes(&self, filter: &Filter, number: u64) -> bool {
        self.items.get(&number).is_some_and(|item| matches(filter, item))
    }
}

#[async_trait]
impl Index for MemoryIndex {
    async fn put(&self, scope: &Scope, kind: &str, items: &[Item]) -> Result<(), Error> {
        check_names(kind, items)?;
        let mut spaces = self.spaces.write().unwrap_or_else(PoisonError::into_inner);
        let space = spaces.entry((scope.clone(), kind.to_owned())).or_default();
        items.iter().for_each(|item| space.put(item));
        Ok(())
    }

    async fn search(&self, search: &Search) -> Result<Found, Error> {
        let spaces = self.spaces.read().unwrap_or_else(PoisonError::into_inner);
        let key = |scope: &Scope| (scope.clone(), search.kind.clone());
        let mut hits: Vec<Hit> = Vec::new();
        for scope in search.distinct_scopes() {
            let Some(space) = spaces.get(&key(scope)) else { continue };
            let occurrences = space.words.occurrences(&[(1.0, &search.text)]);
            let passes = |number| space.passes(&search.filter, number);
            for one in rank(space.words.statistics, &occurrences, passes) {
                let Some(item) = space.items.get(&one.item) else { continue };
                hits.push(hit(scope, item, one));
            }
        }
        hits.sort_by(|one, other| other.words.unwrap_or(0.0).total_cmp(&one.words.unwrap_or(0.0)));
        hits.truncate(search.limit);
        Ok(Found { hits, by_meaning: false })
    }

    async fn remove(&self, scope: &Scope, kind: &str, ids: &[String]) -> Result<u64, Error> {
        let mut spaces = self.spaces.write().unwrap_or_else(PoisonError::into_inner);
        let Some(space) = spaces.get_mut(&(scope.clone(), kind.to_owned())) else { return Ok(0) };
        Ok(ids.iter().filter(|id| space.remove(id)).count() as u64)
    }

    async fn remove_parent(&self, scope: &Scope, kind: &str, parent: &str) -> Result<u64, Error> {
        let mut spaces = self.spaces.write().unwrap_or_else(PoisonError::into_inner);
        let Some(space) = spaces.get_mut(&(scope.clone(), kind.to_owned())) else { return Ok(0) };
        let of_parent = space.items.values().filter(|item| item.parent.as_deref() == Some(parent));
        let ids: Vec<String> = of_parent.map(|item| item.id.clone()).collect();
        Ok(ids.iter().filter(|id| space.remove(id)).count() as u64)
    }

    async fn count(&self, scope: &Scope, kind: &str) -> Result<u64, Error> {
        let spaces = self.spaces.read().unwrap_or_else(PoisonError::into_inner);
        Ok(spaces
            .get(&(scope.clone(), kind.to_owned()))
            .map_or(0, |space| space.items.len() as u64))
    }
}

pub(crate) fn check_names(kind: &str, items: &[Item]) -> Result<(), Error> {
    if kind.is_empty() || items.iter().any(|item| item.id.is_empty()) {
        Err(Error::Unnamed)
    } else {
        Ok(())
    }
}

fn hit(scope: &Scope, item: &Item, scored: Scored) -> Hit {
    Hit {
        scope: scope.clone(),
        id: item.id.clone(),
        parent: item.parent.clone(),
        payload: item.payload.clone(),
        attributes: item.attributes.clone(),
        at: item.at,
        score: scored.score,
        words: Some(scored.score),
        coverage: scored.coverage,
        similarity: None,
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
    fn words_of_one_root_are_found_and_a_word_that_stands_nowhere_finds_related_ones() {
        let index = index(&[("a", "Scheduling of deployments."), ("b", "Runs a program, once.")]);
        assert_eq!(found(&index, "deploy"), [0]);
        assert_eq!(found(&index, "schedules"), [0]);
        assert_eq!(found(&index, "programmatic"), [1]);
    }

    #[test]
    fn equal_texts_stand_in_their_order_and_no_shared_word_finds_nothing() {
        let index = index(&[("x", "reads mail"), ("x", "reads mail"), ("y", "writes mail")]);
        assert_eq!(found(&index, "mail"), [0, 1, 2]);
        assert!(found(&index, "spreadsheet").is_empty());
        assert!(found(&index, "the of and").is_empty(), "words that say nothing");
        assert!(found(&WordIndex::default(), "mail").is_empty());
    }
}
