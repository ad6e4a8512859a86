//! The comparison of a case with its result in an earlier record.

use std::cmp::Ordering;

use crate::record::{CaseRecord, Record};

/// How a case did since an earlier record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// The baseline has no such case.
    New,
    /// More of its runs passed (`Greater`), fewer, or as many; with the mean tokens of a run now ÷ before, unless one of
    /// them is 0.
    Since(Ordering, Option<f64>),
}

impl Change {
    pub fn of(now: &CaseRecord, baseline: &Record) -> Self {
        let Some(before) = baseline.cases.iter().find(|case| case.name == now.name) else {
            return Self::New;
        };
        let tokens = |case: &CaseRecord| case.mean(|run| run.tokens as f64);
        let ratio = tokens(now) / tokens(before);
        let ratio = Some(ratio).filter(|ratio| ratio.is_finite() && *ratio > 0.0);
        Self::Since(now.share().total_cmp(&before.share()), ratio)
    }

    /// Returns whether fewer runs pass than before.
    pub fn is_worse(&self) -> bool {
        matches!(self, Self::Since(Ordering::Less, _))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RunRecord;

    fn case(name: &str, passes: &[bool], tokens: u64) -> CaseRecord {
        let run = |passed: &bool| RunRecord { passed: *passed, tokens, ..RunRecord::default() };
        CaseRecord { name: name.to_owned(), require: 0.5, runs: passes.iter().map(run).collect() }
    }

    #[test]
    fn each_case_is_better_worse_the_same_or_new() {
        let cases = vec![
            case("same", &[true, false], 100),
            case("better", &[false, false], 0),
            case("worse", &[true, true], 100),
        ];
        let before = Record { suite: "s".to_owned(), model: "m".to_owned(), cases };
        for (now, change) in [
            (case("same", &[false, true], 50), Change::Since(Ordering::Equal, Some(0.5))),
            (case("better", &[true, false], 100), Change::Since(Ordering::Greater, None)),
            (case("worse", &[true, false], 100), Change::Since(Ordering::Less, Some(1.0))),
            (case("new", &[true], 100), Change::New),
        ] {
            assert_eq!(Change::of(&now, &before), change);
            assert_eq!(change.is_worse(), now.name == "worse");
        }
    }
}
