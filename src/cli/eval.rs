//! `perihelion eval`: runs a suite of questions and says by its exit code whether the answers are as expected.

use std::path::{Path, PathBuf};

use super::{Error, Exit, Signals, environment, looking, output};
use perihelion_runtime::Runtime;
use perihelion_runtime::eval::{CaseRecord, Change, Comparison, Record, Suite, compare, junit};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A suite is a YAML file: questions, and what must be true of the answers (texts, agents, tools, tables, budgets, a
criterion for a model). docs/evaluation.md has the keys and an example. Every run is a thread that stays, so that what
went wrong can be shown, traced and forked.

Examples:
  perihelion eval suite.yaml
  perihelion eval suite.yaml --model gpt-4.1 --save new.json --baseline old.json
  perihelion eval suite.yaml --junit report.xml

Exit codes:
  0  every case passed, and none is worse than in the baseline
  1  a case failed, or is worse
  2  wrong usage, or the suite cannot be read")]
pub struct Args {
    /// The suite, a YAML file
    #[arg(value_name = "SUITE")]
    suite: PathBuf,
    /// Compare with what an earlier run saved
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Save what this run gave, as a baseline for later ones
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Write a report that CI systems read
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit, Error> {
    let suite = Suite::parse(&read(&args.suite)?).map_err(|error| unusable(&args.suite, &error))?;
    let baseline = args.baseline.as_deref().map(read_record).transpose()?;
    let signals = Signals::listen()?;
    let opening = looking::shown(args.quiet, async |looks| {
        Runtime::builder(settings).environment(&environment).with_progress(looks).open().await
    });
    let runtime = tokio::select! {
        biased;
        () = signals.stopped() => return Ok(Exit::Aborted),
        opened = opening => opened?,
    };
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
    let record = tokio::select! {
        biased;
        () = signals.stopped() => return Ok(Exit::Aborted),
        record = evaluating => record,
    };
    runtime.close().await;
    let record = record?;
    let comparison = baseline.map(|baseline| compare(&baseline, &record));
    if let Some(path) = &args.save {
        let text =
            serde_json::to_string_pretty(&record).map_err(|error| unwritten(path, &error))?;
        write(path, &text)?;
    }
    if let Some(path) = &args.junit {
        write(path, &junit(&record).map_err(|error| unwritten(path, &error))?)?;
    }
    if args.json {
        output::json(&record)?;
    } else {
        output::text(&drawn(&record, comparison.as_deref()))?;
    }
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

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|error| unusable(path, &error))
}

fn read_record(path: &Path) -> Result<Record, Error> {
    serde_json::from_str(&read(path)?).map_err(|error| unusable(path, &error))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(|error| unwritten(path, &error))
}

fn unwritten(path: &Path, error: &dyn std::fmt::Display) -> Error {
    unusable(path, &format!("it cannot be written: {error}"))
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Suite { path: path.to_owned(), reason: error.to_string() }
}
