//! A record for CI systems, in the XML of JUnit.

use crate::record::{CaseRecord, Record};

/// Writes a record: each case is a test, and a failure lists the findings of the runs that failed.
pub fn junit(record: &Record) -> String {
    let counts = format!(
        "tests=\"{}\" skipped=\"0\" failures=\"{}\" errors=\"0\"",
        record.cases.len(),
        record.cases.iter().filter(|case| !case.passed()).count()
    );
    let suite = escaped(&record.suite);
    let tests: String = record.cases.iter().map(|case| test(case, &suite)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"perihelion eval\" {counts}>\n    \
         <testsuite name=\"{suite}\" {counts}>\n{tests}    </testsuite>\n</testsuites>\n"
    )
}

fn test(case: &CaseRecord, suite: &str) -> String {
    let seconds: f64 = case.runs.iter().map(|run| run.seconds).sum();
    let name = escaped(&case.name);
    let begin =
        format!("        <testcase name=\"{name}\" classname=\"{suite}\" time=\"{seconds:.3}\"");
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
    use crate::record::RunRecord;

    #[test]
    fn a_failed_case_says_in_the_report_what_was_not_as_expected() {
        let run = RunRecord {
            thread_id: "t-1".to_owned(),
            passed: false,
            findings: vec!["the answer does not contain: <Blue> & \"\u{1b}Green\"".to_owned()],
            seconds: 1.5,
            tokens: 10,
            cost_usd: 0.0,
            tool_calls: 0,
        };
        let case = CaseRecord { name: "best".to_owned(), require: 1.0, runs: vec![run] };
        let record = Record { suite: "shop".to_owned(), model: "m".to_owned(), cases: vec![case] };
        let xml = junit(&record);
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
