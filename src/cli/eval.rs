//! `perihelion eval`: runs a suite of questions and says by its exit code whether the answers are as expected.

use std::path::{Path, PathBuf};

use super::{Error, Exit, Signals, files, opening, output};
use perihelion_runtime::eval::{CaseRecord, Change, Comparison, Record, Suite, compare, junit};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A suite is a YAML file with questions and rules for the answers. Rules check texts, agents, tools,
tables and budgets, or let a model judge a criterion. docs/guides/evaluation.md describes the format.
Each run is stored as a thread that you can inspect, trace and fork.

Examples:
  perihelion eval suite.yaml
  perihelion eval suite.yaml --model gpt-4.1 --save new.json --baseline old.json
  perihelion eval suite.yaml --junit report.xml

Exit codes:
  0  all cases passed
  1  a case failed, or is worse than in the baseline
  2  invalid usage or suite")]
pub struct Args {
    /// Suite, a YAML file
    #[arg(value_name = "SUITE")]
    suite: PathBuf,
    /// Compare with the saved results of an earlier run
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Save the results as a baseline for later runs
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Write a JUnit report for CI systems
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Hide progress
    #[arg(long, short)]
    quiet: bool,
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit, Error> {
    let suite =
        Suite::parse(&files::read(&args.suite)?).map_err(|error| unusable(&args.suite, &error))?;
    let baseline = args.baseline.as_deref().map(read_record).transpose()?;
    let signals = Signals::listen()?;
    let opening = opening::runtime(settings, args.quiet);
    let Some(opened) = signals.unless_stopped(opening).await else { return Ok(Exit::Aborted) };
    let runtime = opened?;
    let evaluating = runtime.evaluate(&suite, |step| {
        if !args.quiet {
            let ended = step.ended;
            let mark = if ended.passed { "✓" } else { "✗" };
            output::note(&format!(
                "{mark} {} {}/{} ({:.1} s)",
                step.case, step.run, step.of, ended.seconds
            ));
        }
    });
    let Some(record) = signals.unless_stopped(evaluating).await else { return Ok(Exit::Aborted) };
    runtime.close().await;
    let record = record?;
    let comparison = baseline.map(|baseline| compare(&baseline, &record));
    if let Some(path) = &args.save {
        files::write(path, &output::pretty(&record)?)?;
    }
    if let Some(path) = &args.junit {
        files::write(path, &junit(&record))?;
    }
    output::either(args.json, &record, || drawn(&record, comparison.as_deref()))?;
    let is_worse = comparison.iter().flatten().any(|one| one.change == Change::Worse);
    Ok(if record.passed() && !is_worse { Exit::Done } else { Exit::Failed })
}

fn drawn(record: &Record, comparison: Option<&[Comparison]>) -> String {
    let head = ["", "CASE", "PASSED", "SECONDS", "TOKENS", "CALLS", "BASELINE"];
    let rows = record.cases.iter().map(|case| {
        let mark = if case.passed() { "✓" } else { "✗" };
        let beside = comparison.into_iter().flatten().find(|one| one.case == case.name);
        [
            mark.to_owned(),
            case.name.clone(),
            format!("{} of {}", case.passed_runs(), case.runs.len()),
            format!("{:.1}", case.mean(|run| run.seconds)),
            format!("{:.0}", case.mean(|run| run.tokens as f64)),
            format!("{:.1}", case.mean(|run| run.tool_calls as f64)),
            beside.map(words).unwrap_or_default(),
        ]
    });
    let mut text = output::table(head, rows.collect());
    for case in record.cases.iter().filter(|case| !case.passed()) {
        text.push_str(&failures(case));
    }
    text.push('\n');
    text
}

fn failures(case: &CaseRecord) -> String {
    let mut text = format!("\n\n{}", case.name);
    for run in case.runs.iter().filter(|run| !run.passed) {
        text.push_str(&format!("\n  thread {}", run.thread_id));
        for finding in &run.findings {
            text.push_str(&format!("\n    {finding}"));
        }
    }
    text
}

fn words(one: &Comparison) -> String {
    let word = match one.change {
        Change::Same => "same",
        Change::Better => "better",
        Change::Worse => "worse",
        Change::New => "new",
        Change::Gone => "gone",
    };
    match one.tokens_ratio {
        Some(ratio) => format!("{word}, tokens × {ratio:.2}"),
        None => word.to_owned(),
    }
}

fn read_record(path: &Path) -> Result<Record, Error> {
    serde_json::from_str(&files::read(path)?).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Suite { path: path.to_owned(), reason: error.to_string() }
}
