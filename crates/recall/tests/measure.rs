//! The measures of `make bench-recall`.

#[path = "../benches/collections/measure.rs"]
mod measure;

use std::collections::BTreeSet;

use measure::{average_precision, ndcg};

#[test]
fn lists_are_measured_as_the_textbooks_do() {
    let relevant = BTreeSet::from(["a", "c", "x"]);
    let list = ["a", "b", "c", "d"];
    assert!((average_precision(&list, &relevant) - (1.0 + 2.0 / 3.0) / 3.0).abs() < 1e-12);
    let best = 1.0 + 1.0 / 3_f64.log2() + 0.5;
    assert!((ndcg(&list, &relevant, 10) - 1.5 / best).abs() < 1e-12);
    assert_eq!(ndcg(&["b"], &relevant, 10), 0.0);
    assert_eq!(average_precision(&list, &BTreeSet::new()), 0.0);
}
