//! An operator's notes about a database: metrics, verified queries, and the freshness of tables.
//!
//! Enter at [`Knowledge::find`] before a statement is written and at [`Knowledge::used`] after it. Invariant: only
//! notes that the statement contains count as used. Deliberately absent: running anything.

use serde::{Deserialize, Serialize};
use sqlparser::tokenizer::Token;

use crate::Dialect;
use crate::linking;

/// The least likeness of a question to a verified one.
const ALIKE: f64 = 0.4;
/// Most verified queries that are found.
const QUERIES: usize = 3;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Knowledge {
    pub metrics: Vec<Metric>,
    pub verified_queries: Vec<VerifiedQuery>,
    pub freshness: Vec<Freshness>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    pub name: String,
    #[serde(default)]
    pub synonyms: Vec<String>,
    /// Its meaning, with inclusions and exclusions.
    #[serde(default)]
    pub about: String,
    /// The expression: `SUM(orders.total)`.
    pub sql: String,
    /// A condition that belongs to it: `orders.status = 'paid'`.
    pub filter: Option<String>,
    pub tables: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifiedQuery {
    pub question: String,
    pub sql: String,
    /// The verifier, and the date.
    pub verified_by: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Freshness {
    pub table: String,
    /// The column whose newest value is the date.
    pub column: Option<String>,
    /// Or words that do: `loaded every night`.
    pub note: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fitting<'a> {
    pub metrics: Vec<&'a Metric>,
    /// The most alike first.
    pub verified_queries: Vec<&'a VerifiedQuery>,
}

impl Knowledge {
    /// Finds the notes for a question: metrics that it names, and similar verified questions.
    #[must_use]
    pub fn find(&self, question: &str) -> Fitting<'_> {
        let asked = linking::content_words(question);
        let is_named = |name: &String| {
            let words = linking::content_words(name);
            !words.is_empty() && words.is_subset(&asked)
        };
        let metrics = self.metrics.iter();
        let metrics = metrics
            .filter(|metric| is_named(&metric.name) || metric.synonyms.iter().any(is_named))
            .collect();
        let mut alike: Vec<(f64, &VerifiedQuery)> = self
            .verified_queries
            .iter()
            .map(|known| {
                let words = linking::content_words(&known.question);
                let all = asked.union(&words).count().max(1);
                (asked.intersection(&words).count() as f64 / all as f64, known)
            })
            .filter(|(likeness, _)| *likeness >= ALIKE)
            .collect();
        alike.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        alike.truncate(QUERIES);
        Fitting { metrics, verified_queries: alike.into_iter().map(|(_, known)| known).collect() }
    }

    /// Returns the notes that a statement contains: metrics by their expression, verified queries completely.
    #[must_use]
    pub fn used(&self, sql: &str, dialect: Dialect) -> Fitting<'_> {
        let statement = essence(sql, dialect);
        let stands = |part: &str| {
            let part = essence(part, dialect);
            !part.is_empty() && statement.windows(part.len()).any(|window| window == part)
        };
        let is_used =
            |metric: &&Metric| stands(&metric.sql) && metric.filter.as_deref().is_none_or(stands);
        let same = |known: &&VerifiedQuery| essence(&known.sql, dialect) == statement;
        Fitting {
            metrics: self.metrics.iter().filter(is_used).collect(),
            verified_queries: self.verified_queries.iter().filter(same).collect(),
        }
    }

    #[must_use]
    pub fn freshness_of(&self, table: &str) -> Option<&Freshness> {
        self.freshness.iter().find(|known| known.table.eq_ignore_ascii_case(table))
    }
}

/// Returns a statement's tokens without what does not change it: case, quotes, qualifiers, space and the last semicolon.
fn essence(sql: &str, dialect: Dialect) -> Vec<String> {
    let Ok(tokens) = dialect.tokens(sql) else { return Vec::new() };
    let mut kept: Vec<String> = Vec::new();
    for token in tokens {
        match token.token {
            Token::Whitespace(_) | Token::EOF => {}
            Token::Word(word) => {
                if kept.last().is_some_and(|last| last == ".") {
                    // The qualifier and its dot.
                    kept.truncate(kept.len().saturating_sub(2));
                }
                kept.push(word.value.to_lowercase());
            }
            other => kept.push(other.to_string()),
        }
    }
    while kept.last().is_some_and(|last| last == ";") {
        kept.pop();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Knowledge {
        Knowledge {
            metrics: vec![Metric {
                name: "revenue".into(),
                synonyms: vec!["net sales".into()],
                sql: "SUM(orders.total)".into(),
                filter: Some("orders.status = 'paid'".into()),
                tables: vec!["orders".into()],
                ..Metric::default()
            }],
            verified_queries: vec![VerifiedQuery {
                question: "How many orders came per country?".into(),
                sql: "SELECT country, COUNT(*) FROM orders GROUP BY country".into(),
                verified_by: None,
            }],
            freshness: vec![Freshness { table: "orders".into(), ..Freshness::default() }],
        }
    }

    /// S4.03: a word of people finds the definition, and other words do not.
    #[test]
    fn metrics_are_found_by_their_names_and_questions_by_their_likeness() {
        let known = known();
        assert_eq!(known.find("What was the revenue in May?").metrics.len(), 1);
        assert_eq!(known.find("Net sales by month").metrics.len(), 1);
        assert_eq!(known.find("Sales people by region").metrics.len(), 0);
        assert_eq!(known.find("How many orders per country").verified_queries.len(), 1);
        assert_eq!(known.find("How many customers are there?").verified_queries.len(), 0);
        assert!(known.freshness_of("Orders").is_some() && known.freshness_of("lines").is_none());
    }

    #[test]
    fn knowledge_in_a_statement_counts_as_used_with_any_qualifier() {
        let known = known();
        let used = |sql: &str| {
            let used = known.used(sql, Dialect::Sqlite);
            (used.metrics.len(), used.verified_queries.len())
        };
        assert_eq!(used("select sum( o.\"total\" ) from orders o where o.status = 'paid'"), (1, 0));
        assert_eq!(used("SELECT SUM(total) FROM orders"), (0, 0), "its condition is missing");
        assert_eq!(used("SELECT SUM(total * 2) FROM orders WHERE status = 'paid'"), (0, 0));
        assert_eq!(used("SELECT o.country, count(*) FROM orders GROUP BY country;"), (0, 1));
        assert_eq!(used("SELECT country, count(*) FROM orders GROUP BY country LIMIT 1"), (0, 0));
    }
}
