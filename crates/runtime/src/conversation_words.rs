//! The words of conversations as numbers, by which threads and runs are found.
//!
//! A number is made of the tenant and a word's stem, so that the index has no text, and says nothing about other
//! tenants. Nothing is stored next to encrypted threads.

use std::collections::BTreeSet;

use perihelion_database::Query;
use perihelion_recall::words::{Language, QueryTerm, terms, wanted};
use perihelion_service_rows::Kept;

use super::{Error, Runtime};
use crate::graphs::Ended;
use perihelion_star::{GraphState, Message};

/// Words of a message that are stored; a pasted book has more.
const MOST: usize = 20_000;

/// The context in which numbers are derived from words.
const PURPOSE: &str = "perihelion 2026-11 words of conversations";

impl Runtime {
    pub fn has_conversation_words(&self) -> bool {
        self.settings().encryption.keys.is_empty()
    }

    /// Returns the statement that stores the words of a run's messages, if they are stored.
    pub(super) async fn noting_words(&self, ended: &Ended) -> Result<Option<Query>, Error> {
        let Some(database) = self.database.as_ref().filter(|_| self.has_conversation_words())
        else {
            return Ok(None);
        };
        let tenant = &ended.tenant;
        let thread = ended.thread;
        let words = match &*ended.state {
            GraphState { turn: 0, .. } => {
                let graph = self.graph_of(thread).await?;
                written(tenant, graph.state(thread, None).await?.messages().iter().rev())
            }
            star => written(tenant, star.messages.iter().rev()),
        };
        let kept = Kept::new(database.clone(), tenant);
        Ok(Some(kept.noting_words(thread.0, ended.head, words)))
    }
}

/// Returns the numbers of the words in the newest message of a person and the answers to it.
fn written<'a>(tenant: &str, newest_first: impl Iterator<Item = &'a Message>) -> BTreeSet<i64> {
    let mut words = BTreeSet::new();
    for Message { role, content, .. } in newest_first {
        if matches!(role.as_str(), "user" | "assistant") {
            let all = terms(content, Language::of(content)).into_iter();
            words.extend(all.map(|term| number(tenant, &term)).take(MOST));
        }
        if role == "user" {
            break;
        }
    }
    words
}

/// Returns the words of a query, each by the numbers that it may be stored as: its stems in every language.
///
/// Stop words of the query's own language are left out, because messages are stored without theirs.
pub fn conversation_words(tenant: &str, query: &str) -> Vec<Vec<i64>> {
    let language = Language::of(query);
    let mut words = wanted(&[(1.0, query)], Language::all());
    let is_content = |word: &QueryTerm| !language.is_empty_word(&word.word);
    if words.iter().any(is_content) {
        words.retain(is_content);
    }
    let numbers = |terms: Vec<String>| terms.iter().map(|term| number(tenant, term)).collect();
    words.into_iter().map(|word| numbers(word.terms)).collect()
}

fn number(tenant: &str, term: &str) -> i64 {
    let hash = blake3::derive_key(PURPOSE, format!("{tenant}\n{term}").as_bytes());
    hash.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: &str, content: &str) -> Message {
        Message { role: role.into(), content: content.into(), ..Message::default() }
    }

    #[test]
    fn the_words_of_the_newest_turn_are_found_in_any_form_and_by_their_tenant_alone() {
        let messages = [
            message("user", "the walrus"),
            message("assistant", "it sleeps"),
            message("user", "Wie viele Rechnungen sind das?"),
            message("tool", "a secret"),
            message("assistant", "There are three invoices."),
        ];
        let written = written("acme", messages.iter().rev());
        let has = |tenant, query| {
            let words = conversation_words(tenant, query);
            words.iter().all(|word| word.iter().any(|number| written.contains(number)))
        };
        for query in
            ["Rechnung", "invoice", "INVOICES Rechnungen", "the invoice", "die Rechnungen sind das"]
        {
            assert!(has("acme", query), "{query}");
            assert!(!has("other", query), "{query}");
        }
        for query in ["walrus", "secret", "invoice walrus"] {
            assert!(!has("acme", query), "{query}");
        }
    }
}
