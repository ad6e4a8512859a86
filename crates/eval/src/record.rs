//! The results of a suite; saved as JSON, so that a later one can be compared with it.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub thread_id: String,
    pub passed: bool,
    /// The unmet expectations; empty if it passed.
    pub findings: Vec<String>,
    pub seconds: f64,
    pub tokens: u64,
    #[serde(default)]
    pub cost_usd: f64,
    pub tool_calls: u64,
    pub answer: Option<String>,
    /// Model calls that repaired an invalid answer; as the next, of the compared role alone if there is one.
    #[serde(default)]
    pub repairs: u64,
    #[serde(default)]
    pub latencies_ms: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseRecord {
    pub name: String,
    /// The share of runs that must pass.
    pub require: f64,
    pub runs: Vec<RunRecord>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub suite: String,
    /// The model, or another judged subject.
    pub model: String,
    pub cases: Vec<CaseRecord>,
}

impl CaseRecord {
    pub fn passed_runs(&self) -> usize {
        self.runs.iter().filter(|run| run.passed).count()
    }

    /// Returns the share of passed runs; 0 without runs.
    pub fn share(&self) -> f64 {
        if self.runs.is_empty() {
            return 0.0;
        }
        self.passed_runs() as f64 / self.runs.len() as f64
    }

    pub fn passed(&self) -> bool {
        !self.runs.is_empty() && self.share() >= self.require
    }

    pub fn mean(&self, figure: impl Fn(&RunRecord) -> f64) -> f64 {
        if self.runs.is_empty() {
            return 0.0;
        }
        self.runs.iter().map(figure).sum::<f64>() / self.runs.len() as f64
    }
}

impl Record {
    pub fn passed(&self) -> bool {
        !self.cases.is_empty() && self.cases.iter().all(CaseRecord::passed)
    }
}

/// Writes the records of a suite: each case with each model is a test, and a failure lists the findings of the runs that
/// failed.
pub fn junit(suite: &str, records: &[Record]) -> String {
    let cases = || records.iter().flat_map(|record| &record.cases);
    let counts = format!(
        "tests=\"{}\" skipped=\"0\" failures=\"{}\" errors=\"0\"",
        cases().count(),
        cases().filter(|case| !case.passed()).count()
    );
    let suite = escaped(suite);
    let of = |record: &Record| format!("{suite} ({})", escaped(&record.model));
    let tests = |record: &Record| {
        record.cases.iter().map(|case| test(case, &of(record))).collect::<String>()
    };
    let tests: String = records.iter().map(tests).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"perihelion eval\" {counts}>\n    \
         <testsuite name=\"{suite}\" {counts}>\n{tests}    </testsuite>\n</testsuites>\n"
    )
}

fn test(case: &CaseRecord, class: &str) -> String {
    let seconds: f64 = case.runs.iter().map(|run| run.seconds).sum();
    let name = escaped(&case.name);
    let begin =
        format!("        <testcase name=\"{name}\" classname=\"{class}\" time=\"{seconds:.3}\"");
    if case.passed() {
        return format!("{begin}/>\n");
    }
    let findings = case
        .runs
        .iter()
        .filter(|run| !run.passed)
        .map(|run| format!("thread {}:\n  {}", run.thread_id, run.findings.join("\n  ")));
    format!(
        "{begin}>\n            <failure message=\"{} of {} runs passed\">{}</failure>\n        </testcase>\n",
        case.passed_runs(),
        case.runs.len(),
        escaped(&findings.collect::<Vec<_>>().join("\n"))
    )
}

/// Writes text for an element or an attribute, without the characters that XML cannot hold.
fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => {}
            letter if letter.is_control() && letter != '\n' && letter != '\t' => {}
            letter => written.push(letter),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_a_failed_case_names_the_unmet_expectations() {
        let run = RunRecord {
            thread_id: "t-1".to_owned(),
            passed: false,
            findings: vec!["the answer does not contain: <Blue> & \"\u{1b}Green\"".to_owned()],
            seconds: 1.5,
            ..RunRecord::default()
        };
        let case = CaseRecord { name: "best".to_owned(), require: 1.0, runs: vec![run] };
        let record = Record { suite: "shop".to_owned(), model: "m".to_owned(), cases: vec![case] };
        let xml = junit(&record.suite.clone(), &[record]);
        for part in [
            "tests=\"1\"",
            "failures=\"1\"",
            "0 of 1 runs passed",
            "&lt;Blue&gt; &amp; &quot;Green&quot;",
            "t-1",
        ] {
            assert!(xml.contains(part), "{part} is missing: {xml}");
        }
    }
}
