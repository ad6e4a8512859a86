//! Meaning without a model: latent semantic analysis of a collection.
//!
//! S. Deerwester et al., “Indexing by latent semantic analysis”, JASIS 1990: texts are weighed words, and compared in the space of
//! the first singular vectors of all of them. These are found by iteration over a random start (N. Halko, P. Martinsson and J. Tropp, SIAM
//! Review 2011). Only the space counts here, since angles in it are the same by every base.

use std::collections::{BTreeMap, HashMap};

use perihelion_recall::words::{Language, terms};

/// Numbers of a vector.
const DIMENSION: usize = 150;

/// Rounds after which the space does not move in the digits that are printed.
const ROUNDS: usize = 8;

/// A text's words: their numbers, and what each weighs; the weights' squares add up to 1.
type Weighed = Vec<(usize, f64)>;

/// What the texts of a collection share.
pub struct Lsa {
    numbers: HashMap<String, usize>,
    /// What a word weighs by how few texts hold it.
    rarity: Vec<f64>,
    /// Directions of length 1, at right angles to each other, each a number for every word.
    base: Vec<Vec<f64>>,
}

impl Lsa {
    pub fn of(texts: &[String]) -> Self {
        let mut lsa = Self { numbers: HashMap::new(), rarity: Vec::new(), base: Vec::new() };
        let counted: Vec<BTreeMap<String, f64>> = texts.iter().map(|text| counts(text)).collect();
        for word in counted.iter().flat_map(BTreeMap::keys) {
            let next = lsa.numbers.len();
            let number = *lsa.numbers.entry(word.clone()).or_insert(next);
            lsa.rarity.resize(lsa.numbers.len(), 0.0);
            lsa.rarity[number] += 1.0;
        }
        let all = texts.len() as f64;
        lsa.rarity.iter_mut().for_each(|rarity_of_one| {
            *rarity_of_one = ((1.0 + all) / (1.0 + *rarity_of_one)).ln() + 1.0
        });
        let texts: Vec<Weighed> = counted.iter().map(|counts| lsa.weighed(counts)).collect();
        let mut draw = 7_u64;
        let mut random = || {
            draw = draw
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (draw >> 33) as f64 / (1_u64 << 31) as f64 - 0.5
        };
        let words = lsa.rarity.len();
        lsa.base = (0..DIMENSION).map(|_| (0..words).map(|_| random()).collect()).collect();
        for _ in 0..ROUNDS {
            for direction in &mut lsa.base {
                *direction = collected(&texts, direction);
            }
            put_at_right_angles(&mut lsa.base);
        }
        lsa
    }

    /// Returns where a text lies, a question too.
    pub fn embed(&self, text: &str) -> Vec<f32> {
        let weighed = self.weighed(&counts(text));
        self.base.iter().map(|direction| along(&weighed, direction) as f32).collect()
    }

    fn weighed(&self, counts: &BTreeMap<String, f64>) -> Weighed {
        let known =
            counts.iter().filter_map(|(word, count)| Some((*self.numbers.get(word)?, count)));
        let mut weighed: Weighed = known
            .map(|(number, count)| (number, (1.0 + count.ln()) * self.rarity[number]))
            .collect();
        let length = weighed.iter().map(|(_, weight)| weight * weight).sum::<f64>().sqrt();
        weighed.iter_mut().for_each(|(_, weight)| *weight /= length.max(f64::MIN_POSITIVE));
        weighed
    }
}

fn counts(text: &str) -> BTreeMap<String, f64> {
    let mut counts = BTreeMap::new();
    for term in terms(text, Language::English) {
        *counts.entry(term).or_default() += 1.0;
    }
    counts
}

fn along(text: &Weighed, direction: &[f64]) -> f64 {
    text.iter().map(|(word, weight)| weight * direction[*word]).sum()
}

/// Adds up all texts, each by how far it goes in a direction.
fn collected(texts: &[Weighed], direction: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; direction.len()];
    for text in texts {
        let share = along(text, direction);
        text.iter().for_each(|(word, weight)| sum[*word] += share * weight);
    }
    sum
}

/// Gives directions the length 1, and takes out of each what it shares with those before it.
fn put_at_right_angles(base: &mut [Vec<f64>]) {
    for at in 0..base.len() {
        let (before, rest) = base.split_at_mut(at);
        let own = &mut rest[0];
        for other in before.iter() {
            let shared: f64 = own.iter().zip(other).map(|(one, other)| one * other).sum();
            own.iter_mut().zip(other).for_each(|(one, other)| *one -= shared * other);
        }
        let length = own.iter().map(|one| one * one).sum::<f64>().sqrt();
        own.iter_mut().for_each(|one| *one /= length.max(f64::MIN_POSITIVE));
    }
}
