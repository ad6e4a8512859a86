//! Texts by number, ranked by BM25.

use std::collections::HashMap;

use super::text::Weighted;

const K: f64 = 1.2;
const B: f64 = 0.75;

#[derive(Default)]
pub struct WordIndex {
    postings: HashMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
    total: f64,
}

impl FromIterator<Weighted> for WordIndex {
    fn from_iter<T: IntoIterator<Item = Weighted>>(texts: T) -> Self {
        let mut index = Self::default();
        for (number, text) in texts.into_iter().enumerate() {
            let mut counts: HashMap<String, f64> = HashMap::new();
            for (weight, part) in text {
                for word in words(&part) {
                    *counts.entry(word).or_default() += weight;
                }
            }
            let length: f64 = counts.values().sum();
            index.lengths.push(length);
            index.total += length;
            for (word, count) in counts {
                index.postings.entry(word).or_default().push((number, count));
            }
        }
        index
    }
}

impl WordIndex {
    /// Ranks the texts that share words with a question, best first; equal ones in the order in which they were added.
    pub fn rank(&self, question: &[(f64, &str)]) -> Vec<(usize, f64)> {
        let items = self.lengths.len() as f64;
        let average = (self.total / items.max(1.0)).max(1.0);
        let mut asked: HashMap<String, f64> = HashMap::new();
        for (weight, text) in question {
            for word in words(text) {
                let known = asked.entry(word).or_default();
                *known = known.max(*weight);
            }
        }
        let mut asked: Vec<(String, f64)> = asked.into_iter().collect();
        // Sums of floating-point numbers depend on their order.
        asked.sort_by(|a, b| a.0.cmp(&b.0));
        let mut scores: HashMap<usize, f64> = HashMap::new();
        for (word, weight) in &asked {
            let Some(postings) = self.postings.get(word) else { continue };
            let rarity =
                (1.0 + (items - postings.len() as f64 + 0.5) / (postings.len() as f64 + 0.5)).ln();
            for (number, count) in postings {
                let length = self.lengths.get(*number).copied().unwrap_or(average);
                let gain = count * (K + 1.0) / (count + K * (1.0 - B + B * length / average));
                *scores.entry(*number).or_default() += weight * rarity * gain;
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked
    }
}

/// Words without a meaning for the question.
const EMPTY: [&str; 44] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "has",
    "have", "how", "i", "in", "is", "it", "its", "me", "my", "of", "on", "or", "please", "that",
    "the", "their", "them", "there", "this", "to", "was", "were", "what", "when", "which", "who",
    "will", "with", "you", "your",
];

/// Yields the stems of a text's words, without stop words.
pub fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| stem(&word.to_lowercase()))
        .filter(|word| !EMPTY.contains(&word.as_str()))
}

pub fn stem(word: &str) -> String {
    if word.len() > 4 && word.ends_with("ies") {
        return format!("{}y", word.trim_end_matches("ies"));
    }
    for ending in ["sses", "ches", "shes", "xes"] {
        if word.ends_with(ending) {
            return word.trim_end_matches("es").to_owned();
        }
    }
    let is_plural = word.len() > 3
        && word.ends_with('s')
        && !["ss", "us", "is"].iter().any(|end| word.ends_with(end));
    if is_plural { word.trim_end_matches('s').to_owned() } else { word.to_owned() }
}
