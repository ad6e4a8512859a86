//! How good a ranked list is, by judgements.

use std::collections::BTreeSet;

/// Returns the average precision of a list over the relevant ones.
pub fn average_precision<K: Ord>(list: &[K], relevant: &BTreeSet<K>) -> f64 {
    if relevant.is_empty() {
        return 0.0;
    }
    let mut found = 0.0;
    let mut sum = 0.0;
    for (rank, _) in list.iter().enumerate().filter(|(_, one)| relevant.contains(one)) {
        found += 1.0;
        sum += found / (rank + 1) as f64;
    }
    sum / relevant.len() as f64
}

/// Returns the normalised discounted cumulative gain of the first `depth`, each judged relevant or not.
pub fn ndcg<K: Ord>(list: &[K], relevant: &BTreeSet<K>, depth: usize) -> f64 {
    let gain = |rank: usize| 1.0 / ((rank + 2) as f64).log2();
    let best: f64 = (0..relevant.len().min(depth)).map(gain).sum();
    let first = list.iter().take(depth).enumerate().filter(|(_, one)| relevant.contains(one));
    let reached: f64 = first.map(|(rank, _)| gain(rank)).sum();
    if best > 0.0 { reached / best } else { 0.0 }
}
