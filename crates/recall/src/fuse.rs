//! Several ranked lists become one, by reciprocal rank fusion.
//!
//! G. Cormack, C. Clarke and S. Büttcher, “Reciprocal rank fusion outperforms Condorcet and individual rank learning
//! methods”, SIGIR 2009.

use std::collections::BTreeMap;

/// How little the first ranks differ; 60 in the paper.
const RANK_CONSTANT: f64 = 60.0;

/// Fuses lists, each best first and with a weight; of equal ones the one with the smaller key first.
pub fn fuse<K: Ord + Clone>(lists: &[(f64, &[K])]) -> Vec<(K, f64)> {
    let mut scores: BTreeMap<&K, f64> = BTreeMap::new();
    for (weight, list) in lists {
        for (rank, key) in list.iter().enumerate() {
            *scores.entry(key).or_default() += weight / (RANK_CONSTANT + rank as f64 + 1.0);
        }
    }
    let mut fused: Vec<(K, f64)> =
        scores.into_iter().map(|(key, score)| (key.clone(), score)).collect();
    // Stable: equal scores stay in the order of their keys.
    fused.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_high_in_both_lists_come_first_and_a_weight_decides_between_the_lists() {
        let words = ["a", "b", "c"];
        let meaning = ["c", "b", "d"];
        let order = |words_weight: f64| -> Vec<&str> {
            let fused = fuse(&[(words_weight, &words), (1.0, &meaning)]);
            fused.into_iter().map(|(key, _)| key).collect()
        };
        assert_eq!(order(1.0), ["c", "b", "a", "d"]);
        assert_eq!(order(3.0), ["b", "c", "a", "d"]);
        assert_eq!(order(0.1), ["c", "b", "d", "a"]);
        assert!(fuse::<&str>(&[]).is_empty());
    }
}
