//! A record for CI systems, in the XML of JUnit.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::record::{CaseRecord, Record};

/// Writes a record; each case is a test, and what was not as expected stands in its failure.
///
/// # Errors
/// What the writer of XML says.
pub fn junit(record: &Record) -> Result<String, quick_junit::SerializeError> {
    let mut suite = TestSuite::new(record.suite.as_str());
    for case in &record.cases {
        let mut test = TestCase::new(case.name.as_str(), status(case));
        let seconds: f64 = case.runs.iter().map(|run| run.seconds).sum();
        test.set_classname(record.suite.as_str());
        test.set_time(Duration::try_from_secs_f64(seconds).unwrap_or_default());
        suite.add_test_case(test);
    }
    let mut report = Report::new("perihelion eval");
    report.add_test_suite(suite);
    report.to_string()
}

fn status(case: &CaseRecord) -> TestCaseStatus {
    if case.passed() {
        return TestCaseStatus::success();
    }
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_message(format!("{} of {} runs passed", case.passed_runs(), case.runs.len()));
    let findings = case
        .runs
        .iter()
        .filter(|run| !run.passed)
        .map(|run| format!("thread {}:\n  {}", run.thread_id, run.findings.join("\n  ")));
    status.set_description(findings.collect::<Vec<_>>().join("\n"));
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RunRecord;

    #[test]
    fn a_failed_case_says_in_the_report_what_was_not_as_expected() {
        let run = RunRecord {
            thread_id: "t-1".to_owned(),
            passed: false,
            findings: vec!["the answer does not contain: <Blue>".to_owned()],
            seconds: 1.5,
            tokens: 10,
            cost_usd: 0.0,
            tool_calls: 0,
        };
        let case = CaseRecord { name: "best".to_owned(), require: 1.0, runs: vec![run] };
        let record = Record { suite: "shop".to_owned(), model: "m".to_owned(), cases: vec![case] };
        let xml = junit(&record).unwrap();
        for part in ["tests=\"1\"", "failures=\"1\"", "0 of 1 runs passed", "&lt;Blue&gt;", "t-1"] {
            assert!(xml.contains(part), "{part} is missing: {xml}");
        }
    }
}
