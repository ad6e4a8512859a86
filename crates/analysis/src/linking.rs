//! Which tables a question is about: by the words of names, comments and values.
//!
//! Enter at [`Linker::new`]. Invariant: a small schema is passed completely, and selected tables come with those that
//! join them. Deliberately absent: meaning; a table that is called by other words is found by its values or not at all.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::Catalogue;
use crate::joins::JoinGraph;
use crate::syntax::lists;

/// Weight of a word in a table's name against one in a column's.
const NAME_WEIGHT: f64 = 3.0;
const K1: f64 = 1.2;
const B: f64 = 0.4;

/// Words that questions have and schemas have no use for.
const STOP: &str = "
    a all an and are as at be by did do does each find for from give had has have how in is it list
    many me most much of on or out per show than that the their them there these they this to was
    were what when where which who whose with you
";

/// Returns the stems of a text's significant words, each once.
pub(crate) fn content_words(text: &str) -> BTreeSet<String> {
    words(text).into_iter().filter(|word| !lists(STOP, word)).collect()
}

#[derive(Clone, Debug, PartialEq)]
pub struct Linked {
    pub table: usize,
    pub score: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Links {
    /// Best first.
    pub tables: Vec<Linked>,
    /// The share of the question's words for which the schema has any evidence: little for unrelated questions.
    pub evidence: f64,
}

pub struct Linker<'a> {
    catalogue: &'a Catalogue,
    graph: JoinGraph<'a>,
    /// Weighted counts of words, and the length, by table.
    tables: Vec<(HashMap<String, f64>, f64)>,
    mean: f64,
    /// How many tables contain a word.
    spread: HashMap<String, usize>,
}

impl<'a> Linker<'a> {
    pub fn new(catalogue: &'a Catalogue) -> Self {
        let mut tables = Vec::with_capacity(catalogue.tables.len());
        let mut spread: HashMap<String, usize> = HashMap::new();
        for table in &catalogue.tables {
            let mut counts: HashMap<String, f64> = HashMap::new();
            let mut add = |text: &str, weight: f64| {
                for word in words(text) {
                    *counts.entry(word).or_default() += weight;
                }
            };
            add(&table.name.name, NAME_WEIGHT);
            add(table.comment.as_deref().unwrap_or_default(), 1.0);
            for column in &table.columns {
                add(&column.name, 1.0);
                add(column.comment.as_deref().unwrap_or_default(), 0.5);
                for value in &column.values {
                    add(value, 0.5);
                }
            }
            for word in counts.keys() {
                *spread.entry(word.clone()).or_default() += 1;
            }
            let length = counts.values().sum();
            tables.push((counts, length));
        }
        let mean =
            tables.iter().map(|(_, length)| length).sum::<f64>() / tables.len().max(1) as f64;
        Self { catalogue, graph: JoinGraph::new(catalogue), tables, mean, spread }
    }

    /// Returns the tables that a question is likely about, best first.
    pub fn rank(&self, question: &str) -> Links {
        let asked = content_words(question);
        let mut known: HashSet<&str> = HashSet::new();
        let count = self.tables.len() as f64;
        let mut scored: Vec<Linked> = Vec::new();
        for (at, (counts, length)) in self.tables.iter().enumerate() {
            let mut score = 0.0;
            for word in &asked {
                let Some((term, times)) = self.hit(counts, word) else { continue };
                let in_tables = self.spread.get(term).copied().unwrap_or(1) as f64;
                let rarity = (1.0 + (count - in_tables + 0.5) / (in_tables + 0.5)).ln();
                let norm = K1 * (1.0 - B + B * length / self.mean.max(1.0));
                score += rarity * times * (K1 + 1.0) / (times + norm);
                known.insert(word);
            }
            if score > 0.0 {
                scored.push(Linked { table: at, score });
            }
        }
        scored.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.table.cmp(&b.table)));
        let evidence = if asked.is_empty() { 0.0 } else { known.len() as f64 / asked.len() as f64 };
        Links { tables: scored, evidence }
    }

    /// Returns the tables for a question: all if they fit, otherwise the best and those that join them.
    pub fn pick(&self, question: &str, found_in: &[usize], most: usize) -> Vec<usize> {
        if self.catalogue.tables.len() <= most {
            return (0..self.catalogue.tables.len()).collect();
        }
        let mut picked: Vec<usize> = found_in.to_vec();
        for linked in self.rank(question).tables {
            if picked.len() >= most.div_ceil(2) {
                break;
            }
            if !picked.contains(&linked.table) {
                picked.push(linked.table);
            }
        }
        let mut closed = self.graph.closure(&picked);
        closed.truncate(most);
        closed
    }

    pub fn graph(&self) -> &JoinGraph<'a> {
        &self.graph
    }

    /// Finds a word as it is, or as part of a compound such as `customername`.
    fn hit<'t>(&self, counts: &'t HashMap<String, f64>, word: &str) -> Option<(&'t str, f64)> {
        if let Some((term, times)) = counts.get_key_value(word) {
            return Some((term, *times));
        }
        if word.len() < 4 {
            return None;
        }
        counts
            .iter()
            .filter(|(term, _)| {
                term.len() >= 4
                    && (term.starts_with(word)
                        || word.starts_with(term.as_str())
                        || term.ends_with(word))
            })
            .map(|(term, times)| (term.as_str(), times * 0.6))
            .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(a.0)))
    }
}

/// Splits names and sentences into words without endings: `CustomerOrders2024` → customer, order, 2024.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut last_lower = false;
    for c in text.chars() {
        let boundary = !c.is_alphanumeric() || (c.is_uppercase() && last_lower);
        if boundary && !word.is_empty() {
            words.push(stem(&std::mem::take(&mut word)));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        last_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    if !word.is_empty() {
        words.push(stem(&word));
    }
    words
}

fn stem(word: &str) -> String {
    let long = |rest: &str| rest.len() >= 3;
    if let Some(rest) = word.strip_suffix("ies").filter(|rest| long(rest)) {
        return format!("{rest}y");
    }
    for ending in ["sses", "xes", "ches", "shes"] {
        if word.ends_with(ending) {
            return word[..word.len() - 2].to_owned();
        }
    }
    if let Some(rest) = word.strip_suffix('s').filter(|rest| long(rest) && !rest.ends_with('s')) {
        return rest.to_owned();
    }
    for ending in ["ing", "ed"] {
        if let Some(rest) = word.strip_suffix(ending).filter(|rest| rest.len() >= 4) {
            return rest.to_owned();
        }
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::catalogue;

    /// S4.03
    #[test]
    fn tables_are_found_by_words_of_their_names_columns_and_values() {
        let mut catalogue = catalogue();
        catalogue.tables[3].columns[1].values = vec!["Sachertorte".into()];
        let linker = Linker::new(&catalogue);
        let best = |question: &str| {
            let links = linker.rank(question);
            links.tables.first().map(|linked| catalogue.tables[linked.table].name.name.clone())
        };
        assert_eq!(best("How many customers are there per country?").as_deref(), Some("customers"));
        assert_eq!(best("What did the Sachertorte cost?").as_deref(), Some("products"));
        assert_eq!(best("Which flight has the longest delay?").as_deref(), Some("flights"));
        let unrelated = linker.rank("What is the weather like tomorrow?");
        let related = linker.rank("the total of orders by country");
        assert!(unrelated.evidence < 0.3 && related.evidence > 0.9);
        // A word counts once, wherever the question repeats it.
        let repeated = linker.rank("orders by country, orders by customer, orders by weather");
        assert_eq!(repeated.evidence, 0.75);
    }

    #[test]
    fn selected_tables_include_the_tables_that_join_them() {
        let catalogue = catalogue();
        let linker = Linker::new(&catalogue);
        let names: Vec<&str> = linker
            .pick("customers and products", &[], 6)
            .into_iter()
            .map(|at| catalogue.tables[at].name.name.as_str())
            .collect();
        assert!(names.contains(&"orders") && names.contains(&"lines"), "{names:?}");
    }
}
