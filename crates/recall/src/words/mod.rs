//! Text becomes terms: the one analyser of every index.
//!
//! Enter at [`terms`] for indexed texts and [`wanted`] for queries. Words are normalised (NFKC, lower case),
//! identifiers are cut at their humps and found as a whole as well, scripts without spaces become overlapping pairs of
//! letters, and words are stemmed by the language of the text. Invariant: pure; the same text gives the same terms in
//! every process. Deliberately absent: a guess at the language of a question, which is too short for one: its words are
//! stemmed by every language of the index.

mod language;
mod split;
mod stem;

pub use language::Language;
pub use split::split;
use split::{Run, runs};
pub(crate) use stem::beginning;
pub use stem::related;

use std::collections::BTreeMap;

/// The version of the analyser. A text that is stored again gets the terms of this version.
pub const ANALYSER: u32 = 2;

/// Distinct words of a query that count; a longer query is a document, whose first words give its subject.
const WANTED_WORDS: usize = 200;

/// Letters of a term that are used; a longer one is not a word.
const LONGEST: usize = 64;

/// Returns the terms of a text in their order, without stop words.
pub fn terms(text: &str, language: Language) -> Vec<String> {
    let words = split(text);
    let spoken = words.iter().filter(|word| !language.is_empty_word(word));
    spoken.map(|word| clip(stem::stem(word, language))).collect()
}

#[derive(Clone, Debug, PartialEq)]
pub struct QueryTerm {
    /// The word as it was written, normalised.
    pub word: String,
    /// Its possible terms, one for each language of the index and each spelling; without duplicates.
    pub terms: Vec<String>,
    /// How often it was said, or how much it counts.
    pub weight: f64,
}

/// Returns the words of a question, each with its terms in the languages of an index.
pub fn wanted(fields: &[(f64, &str)], languages: &[Language]) -> Vec<QueryTerm> {
    let mut wanted: Vec<QueryTerm> = Vec::new();
    let mut places: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for (weight, text) in fields {
        for Run { mut parts, whole } in runs(text) {
            let is_empty = |word: &String| languages.iter().all(|one| one.is_empty_word(word));
            if parts.iter().all(is_empty) {
                parts.extend(whole.clone());
            }
            // Indexes of earlier versions have `APIs` as `ap`.
            let cut = whole.as_ref().filter(|_| parts.len() == 1);
            let earlier = cut.and_then(|whole| whole.get(..whole.len() - 2));
            let earlier = earlier.filter(|cut| cut.len() > 1);
            for word in parts {
                // A stop word of one language can be a name in another one.
                let spoken = languages.iter().filter(|language| !language.is_empty_word(&word));
                let spellings =
                    || [word.as_str()].into_iter().chain(whole.as_deref()).chain(earlier);
                let mut terms: Vec<String> = spoken
                    .flat_map(|language| {
                        spellings().map(move |one| clip(stem::stem(one, *language)))
                    })
                    .collect();
                terms.sort();
                terms.dedup();
                if terms.is_empty() {
                    continue;
                }
                if let Some(at) = places.get(&terms) {
                    wanted[*at].weight += weight;
                } else if wanted.len() < WANTED_WORDS {
                    places.insert(terms.clone(), wanted.len());
                    wanted.push(QueryTerm { word, terms, weight: *weight });
                }
            }
        }
    }
    wanted
}

fn clip(term: String) -> String {
    match term.char_indices().nth(LONGEST) {
        Some((at, _)) => term[..at].to_owned(),
        None => term,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_stemmed_by_the_language_of_the_text() {
        assert_eq!(terms("Scheduling of deployments", Language::English), ["schedul", "deploy"]);
        assert_eq!(terms("die Rechnungen", Language::German), ["rechnung"]);
        assert_eq!(terms("заказы клиента", Language::Russian), ["заказ", "клиент"]);
    }

    #[test]
    fn a_question_is_asked_in_every_language_of_the_index() {
        let asked = wanted(&[(1.0, "Rechnungen")], &[Language::English, Language::German]);
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].terms, ["rechnung", "rechnungen"]);
    }

    #[test]
    fn a_repeated_word_counts_twice() {
        let asked = wanted(&[(1.0, "flow over a flow"), (0.5, "flows")], &[Language::English]);
        let flow = asked.iter().find(|one| one.word == "flow").unwrap();
        assert_eq!(flow.weight, 2.5);
    }

    #[test]
    fn a_word_with_humps_is_found_by_its_whole_and_a_plural_by_its_abbreviation() {
        for (stored, asked) in [
            ("GitHub", "github"),
            ("github", "GitHub"),
            ("GitHub", "hub"),
            ("JavaScript", "javascript"),
            ("McDonald", "mcdonald"),
            ("parseHTTPHeader", "header"),
            ("toDo", "todo"),
            ("todo", "toDo"),
            ("APIs", "API"),
            ("APIs", "apis"),
            ("API", "APIs"),
            ("GPUs", "gpu"),
            ("GPUs", "gpus"),
            ("gpus", "GPUs"),
            ("listAPIs", "api"),
            ("PCs", "pc"),
            ("Daten\u{ad}schutz", "Datenschutz"),
            ("Datenschutz", "Daten\u{ad}schutz"),
            // As indexes of earlier versions have them.
            ("git hub", "GitHub"),
            ("ap", "APIs"),
        ] {
            for language in [Language::English, Language::German] {
                let terms = terms(stored, language);
                let asked = wanted(&[(1.0, asked)], &[language]);
                let is_found = |word: &QueryTerm| word.terms.iter().any(|one| terms.contains(one));
                assert!(asked.iter().any(is_found), "{stored}: {terms:?}, {asked:?}");
            }
        }
    }

    #[test]
    fn a_whole_is_another_spelling_of_each_part_and_no_further_word() {
        let asked = wanted(&[(1.0, "GitHub")], &[Language::English]);
        assert_eq!(asked.iter().map(|one| one.weight).collect::<Vec<_>>(), [1.0, 1.0]);
        assert_eq!(asked[0].terms, ["git", "github"]);
        assert_eq!(asked[1].terms, ["github", "hub"]);
    }

    #[test]
    fn overlong_words_are_cut_short() {
        let endless = "ä".repeat(1000);
        assert_eq!(terms(&endless, Language::English)[0].chars().count(), LONGEST);
    }
}
