//! Okapi BM25 over postings, wherever they come from.
//!
//! S. Robertson and H. Zaragoza, “The Probabilistic Relevance Framework: BM25 and Beyond”, Foundations and Trends in
//! Information Retrieval 3 (2009), sections 3.4 (BM25) and 3.6 (weighted fields). Pure, and added up in a fixed order, so that equal
//! postings give equal scores in every process and from every database.

use std::cmp::Ordering;
use std::collections::BTreeMap;

pub use crate::posting::Posting;
use crate::posting::QUARTERS;

/// How soon further occurrences of a word stop counting.
const K1: f64 = 1.5;

/// The weight of a text's length.
const B: f64 = 0.75;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub items: u64,
    /// Sum of all items' lengths, in quarters of a term.
    pub length: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Occurrences {
    /// Its frequency in the query, or its weight.
    pub weight: f64,
    /// Sorted by item, each item once.
    pub postings: Vec<Posting>,
    /// The weight of an occurrence: less than 1 for a word that is only related.
    pub likeness: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    pub item: u64,
    pub score: f64,
    /// The share of the words' weight that the item contains, from 0 to 1.
    pub coverage: f64,
}

/// Scores the items that contain the words and returns the first ones, best first; of equal ones the earlier item first.
///
/// `passes` decides which items are ranked; statistics are those of the whole space in either case.
pub fn rank(
    statistics: Statistics,
    words: &[Occurrences],
    passes: impl Fn(u64) -> bool,
    most: usize,
) -> Vec<Scored> {
    let items = statistics.items.max(1) as f64;
    let mean = (statistics.length as f64 / items).max(1.0);
    let mut sums = Sums::over(words);
    let mut whole = 0.0;
    for word in words {
        let with = word.postings.len() as f64;
        let rarity = (1.0 + (items - with + 0.5).max(0.0) / (with + 0.5)).ln();
        let worth = word.weight * rarity;
        whole += worth;
        for posting in word.postings.iter().filter(|posting| passes(posting.item)) {
            let count = f64::from(posting.count) / QUARTERS * word.likeness;
            let length = f64::from(posting.length) / mean;
            let fullness = count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length));
            let (score, covered) = sums.of(posting.item);
            *score += worth * fullness;
            *covered += worth * word.likeness;
        }
    }
    let mut ranked = sums.scored(whole);
    first_of(&mut ranked, most, |one, other| {
        other.score.total_cmp(&one.score).then(one.item.cmp(&other.item))
    });
    ranked
}

enum Sums {
    /// One place per number from the first on, if the numbers are close enough.
    Dense {
        first: u64,
        places: Vec<(f64, f64)>,
    },
    Sparse(BTreeMap<u64, (f64, f64)>),
}

/// Places of numbers without a posting that are accepted for each one with a posting.
const SLACK: u64 = 4;

impl Sums {
    fn over(words: &[Occurrences]) -> Self {
        let ends =
            words.iter().filter_map(|word| Some((word.postings.first()?, word.postings.last()?)));
        let ends: Vec<(u64, u64)> = ends.map(|(first, last)| (first.item, last.item)).collect();
        let first = ends.iter().map(|(first, _)| *first).min().unwrap_or(0);
        let last = ends.iter().map(|(_, last)| *last).max().unwrap_or(0);
        let postings: usize = words.iter().map(|word| word.postings.len()).sum();
        let span = last - first + 1;
        if span <= (postings as u64).saturating_mul(SLACK) {
            Self::Dense { first, places: vec![(0.0, 0.0); span as usize] }
        } else {
            Self::Sparse(BTreeMap::new())
        }
    }

    /// Returns the sums of an item: score, and coverage.
    fn of(&mut self, item: u64) -> &mut (f64, f64) {
        match self {
            Self::Dense { first, places } => &mut places[(item - *first) as usize],
            Self::Sparse(sums) => sums.entry(item).or_default(),
        }
    }

    fn scored(self, whole: f64) -> Vec<Scored> {
        let scored = |(item, (score, covered)): (u64, (f64, f64))| {
            // What differs in the last bits alone is equal.
            let score = (score * 1e6_f64).round() / 1e6;
            Scored { item, score, coverage: if whole > 0.0 { covered / whole } else { 0.0 } }
        };
        let has_score = |one: &Scored| one.score > 0.0;
        match self {
            Self::Dense { first, places } => {
                (first..).zip(places).map(scored).filter(has_score).collect()
            }
            Self::Sparse(sums) => sums.into_iter().map(scored).filter(has_score).collect(),
        }
    }
}

/// Keeps the first ones of a list in their order; the order must be total.
pub(crate) fn first_of<T>(list: &mut Vec<T>, most: usize, order: impl Fn(&T, &T) -> Ordering) {
    if most < list.len() {
        list.select_nth_unstable_by(most, &order);
        list.truncate(most);
    }
    list.sort_unstable_by(order);
}

/// Joins the postings of several terms for one word: their counts add up.
pub(crate) fn join(mut postings: Vec<Posting>) -> Vec<Posting> {
    postings.sort_by_key(|posting| posting.item);
    postings.dedup_by(|next, kept| {
        let is_same = next.item == kept.item;
        if is_same {
            kept.count = kept.count.saturating_add(next.count);
        }
        is_same
    });
    postings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(postings: &[(u64, u32)]) -> Occurrences {
        let posting =
            |(item, count): &(u64, u32)| Posting { item: *item, count: *count, length: 40 };
        Occurrences { weight: 1.0, postings: postings.iter().map(posting).collect(), likeness: 1.0 }
    }

    #[test]
    fn rare_words_count_more_and_equal_items_stay_in_their_order() {
        let statistics = Statistics { items: 10, length: 400 };
        let common = word(&[(1, 4), (2, 4), (3, 4), (4, 4)]);
        let rare = word(&[(3, 4)]);
        let ranked = rank(statistics, &[common, rare], |_| true, usize::MAX);
        let order: Vec<u64> = ranked.iter().map(|one| one.item).collect();
        assert_eq!(order, [3, 1, 2, 4]);
        assert!((ranked[0].coverage - 1.0).abs() < 1e-9 && ranked[1].coverage < 0.5);
    }

    #[test]
    fn the_best_are_the_first_of_all_at_any_distance_of_their_scores() {
        let statistics = Statistics { items: 5_000, length: 5_000 * 40 };
        for step in [1, 1_000] {
            let postings: Vec<(u64, u32)> =
                (0..1_000_u64).map(|n| (7 + n * step, 1 + (n * 37 % 11) as u32)).collect();
            let words = [word(&postings), word(&postings[300..400])];
            let all = rank(statistics, &words, |item| item % 3 != 0, usize::MAX);
            for most in [0, 1, 50, 10_000] {
                let some = rank(statistics, &words, |item| item % 3 != 0, most);
                assert_eq!(some, all[..most.min(all.len())]);
            }
            assert!(
                all.is_sorted_by(|one, other| (other.score, one.item) <= (one.score, other.item)
                    || one.score > other.score)
            );
        }
    }

    #[test]
    fn the_reference_value_is_met() {
        let statistics = Statistics { items: 2, length: 2 * 40 };
        let ranked = rank(statistics, &[word(&[(1, 4)])], |_| true, usize::MAX);
        // One item of mean length with one occurrence: the fraction is 1, the logarithm that of 2.
        assert!((ranked[0].score - 2_f64.ln()).abs() < 1e-6);
    }

    #[test]
    fn filtered_items_are_not_ranked_and_do_not_change_other_scores() {
        let statistics = Statistics { items: 10, length: 400 };
        let all = rank(statistics, &[word(&[(1, 4), (2, 8)])], |_| true, usize::MAX);
        let some = rank(statistics, &[word(&[(1, 4), (2, 8)])], |item| item == 1, usize::MAX);
        assert_eq!(some, [all[1]]);
    }
}
