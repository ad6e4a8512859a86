//! A record beside an earlier one: what got better, what got worse.

use crate::record::{CaseRecord, Record};

/// How a case stands beside its earlier self.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Same,
    Better,
    Worse,
    /// The baseline has no such case.
    New,
    /// Only the baseline has it.
    Gone,
}

/// One case in both records.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub case: String,
    pub change: Change,
    /// Share of runs that passed, before and now.
    pub before: Option<f64>,
    pub now: Option<f64>,
    /// Mean tokens of a run now ÷ before; none where one of them is 0.
    pub tokens_ratio: Option<f64>,
}

/// Compares case by case, in the order of the newer record; those that are gone come last.
pub fn compare(baseline: &Record, record: &Record) -> Vec<Comparison> {
    let find =
        |record: &'_ Record, name: &str| record.cases.iter().position(|case| case.name == name);
    let mut found: Vec<Comparison> = record
        .cases
        .iter()
        .map(|now| match find(baseline, &now.name) {
            Some(at) => beside(&baseline.cases[at], now),
            None => Comparison {
                case: now.name.clone(),
                change: Change::New,
                before: None,
                now: Some(now.share()),
                tokens_ratio: None,
            },
        })
        .collect();
    let gone = baseline.cases.iter().filter(|case| find(record, &case.name).is_none());
    found.extend(gone.map(|case| Comparison {
        case: case.name.clone(),
        change: Change::Gone,
        before: Some(case.share()),
        now: None,
        tokens_ratio: None,
    }));
    found
}

fn beside(before: &CaseRecord, now: &CaseRecord) -> Comparison {
    let change = match now.share().total_cmp(&before.share()) {
        std::cmp::Ordering::Equal => Change::Same,
        std::cmp::Ordering::Greater => Change::Better,
        std::cmp::Ordering::Less => Change::Worse,
    };
    let tokens = |case: &CaseRecord| case.mean(|run| run.tokens as f64);
    let ratio = tokens(now) / tokens(before);
    Comparison {
        case: now.name.clone(),
        change,
        before: Some(before.share()),
        now: Some(now.share()),
        tokens_ratio: Some(ratio).filter(|ratio| ratio.is_finite() && *ratio > 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RunRecord;

    fn case(name: &str, passes: &[bool], tokens: u64) -> CaseRecord {
        let run = |passed: &bool| RunRecord {
            thread_id: "t".to_owned(),
            passed: *passed,
            findings: Vec::new(),
            seconds: 1.0,
            tokens,
            cost_usd: 0.0,
            tool_calls: 1,
        };
        CaseRecord { name: name.to_owned(), require: 0.5, runs: passes.iter().map(run).collect() }
    }

    fn record(cases: Vec<CaseRecord>) -> Record {
        Record { suite: "s".to_owned(), model: "m".to_owned(), cases }
    }

    #[test]
    fn each_case_is_better_worse_the_same_new_or_missing() {
        let before = record(vec![
            case("same", &[true, false], 100),
            case("better", &[false, false], 100),
            case("worse", &[true, true], 100),
            case("gone", &[true], 100),
        ]);
        let now = record(vec![
            case("same", &[false, true], 50),
            case("better", &[true, false], 100),
            case("worse", &[true, false], 100),
            case("new", &[true], 100),
        ]);
        let changes: Vec<_> =
            compare(&before, &now).into_iter().map(|one| (one.case, one.change)).collect();
        let wanted = [
            ("same", Change::Same),
            ("better", Change::Better),
            ("worse", Change::Worse),
            ("new", Change::New),
            ("gone", Change::Gone),
        ];
        assert_eq!(changes, wanted.map(|(name, change)| (name.to_owned(), change)));
        assert_eq!(compare(&before, &now)[0].tokens_ratio, Some(0.5));
    }

    #[test]
    fn a_case_passes_when_enough_of_its_runs_do_and_never_without_a_run() {
        assert!(case("half", &[true, false], 1).passed());
        assert!(!case("none", &[false, false], 1).passed());
        assert!(!case("empty", &[], 1).passed());
        assert!(!record(Vec::new()).passed());
    }
}
