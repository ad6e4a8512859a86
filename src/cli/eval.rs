//! `perihelion eval`: runs a suite with one model or several, and says by its exit code whether the answers are as expected.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;

use super::{Error, Exit, Globals, Result, Signals, files, opening, output};
use perihelion_runtime::eval::{
    Case, CaseRecord, Change, Estimate, Evaluation, Figures, Preference, Record, RunRecord, Suite,
    junit,
};
use perihelion_runtime::{Evaluator, Judge, Runtime};
use perihelion_settings::config::{Overrides, RoleModel, Roles, Settings};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A suite is a YAML file with questions and rules for the answers. A data set is a file of JSON lines \
(.jsonl), such as {\"input\": \"How many?\", \"expected\": \"42\"}. docs/guides/evaluation.md describes both. \
Each run is stored as a thread that you can inspect, trace and fork. The web UI lists evaluations.

Examples:
  perihelion eval suite.yaml --save baseline.json
  perihelion eval suite.yaml --baseline baseline.json --junit report.xml
  perihelion eval questions.jsonl --model gpt-4.1 --model qwen3:4b@http://localhost:11434/v1
  perihelion eval questions.jsonl --role qa --model small --model large --judge large

Exit codes:
  0  all cases passed
  1  a case failed, or is worse than in the baseline
  2  invalid usage or suite")]
pub struct Args {
    /// Suite (YAML), or data set (.jsonl)
    #[arg(value_name = "SUITE")]
    suite: PathBuf,
    /// Model to evaluate, with its URL if it has its own. Repeatable
    #[arg(long, value_name = "NAME[@URL]")]
    model: Vec<String>,
    /// Role that the models take. Defaults to every role without its own model
    #[arg(long, requires = "model", value_parser = PossibleValuesParser::new(Roles::NAMES))]
    role: Option<String>,
    /// Model that judges expected answers, and compares each model with the first one
    #[arg(long, value_name = "NAME[@URL]")]
    judge: Option<String>,
    /// Run only the cases with this tag
    #[arg(long)]
    tag: Option<String>,
    /// Runs of each case. Defaults to the number in the suite
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repeat: Option<u32>,
    /// Seed of the resamples behind the confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Compare with the saved results of an earlier evaluation
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Save the results as a baseline for later evaluations
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

pub(super) async fn run(globals: &Globals, settings: Settings, args: Args) -> Result<Exit> {
    let suite = args.suite()?;
    let baseline = args.baseline.as_deref().map(read_evaluation).transpose()?;
    // A directory that cannot be made shows before the runs, which cost money.
    for path in args.save.iter().chain(&args.junit) {
        files::make_directory_of(path)?;
    }
    let signals = Signals::listen()?;
    let evaluation = evaluate(globals, settings, &args, &suite, &signals).await?;
    let baseline = baseline.as_ref();
    // Results that cannot be shown are still written to the files.
    let shown = output::either(args.json, &evaluation, || drawn(&evaluation, baseline));
    let mut written = Vec::new();
    if let Some(path) = &args.save {
        let text = output::pretty(&evaluation);
        written.push(text.and_then(|text| files::write(path, &text)));
    }
    if let Some(path) = &args.junit {
        written.push(files::write(path, &junit(&evaluation.suite, &evaluation.records)));
    }
    let mut is_written = true;
    for error in written.into_iter().filter_map(Result::err) {
        output::coded_error(&error.code(), &error.to_string());
        is_written = false;
    }
    shown?;
    let is_worse = evaluation.records.iter().any(|record| {
        let mut changes = record.cases.iter().filter_map(|case| change(case, record, baseline));
        changes.any(|change| change.is_worse())
    });
    let is_passed = evaluation.records.iter().all(Record::passed);
    Ok(if is_passed && is_written && !is_worse { Exit::Done } else { Exit::Failed })
}

impl Args {
    fn suite(&self) -> Result<Suite> {
        let path = self.suite.as_path();
        let text = files::read(path)?;
        let is_data = path.extension().is_some_and(|extension| extension == "jsonl");
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let read = if is_data { Suite::parse_lines(&name, &text) } else { Suite::parse(&text) };
        let mut suite = read.map_err(|error| unusable(path, &error))?;
        if let Some(tag) = &self.tag {
            suite.cases.retain(|case| case.tags.contains(tag));
            if suite.cases.is_empty() {
                return Err(unusable(path, &format!("no case has the tag {tag}")));
            }
        }
        for case in &mut suite.cases {
            case.repeat = self.repeat.or(case.repeat);
        }
        Ok(suite)
    }
}

/// Evaluates the models one after the other, compares their answers, and stores the figures.
async fn evaluate(
    globals: &Globals,
    settings: Settings,
    args: &Args,
    suite: &Suite,
    signals: &Signals,
) -> Result<Evaluation> {
    let role = args.role.as_deref();
    let first = args.model.first().filter(|_| role.is_none());
    let judge = match (&args.judge, first) {
        (Some(judge), _) => with_model(globals, Some("classifier"), judge)?,
        (None, Some(first)) => with_model(globals, None, first)?,
        (None, None) => globals.settings_with(Overrides { model: None, ..globals.overrides() })?,
    };
    let judge = Judge::new(&judge)?;
    let evaluator = Evaluator { suite, role, judge: &judge, is_strict: args.judge.is_none() };
    let mut subjects: Vec<(String, Settings)> = Vec::new();
    for model in &args.model {
        subjects.push((model.clone(), with_model(globals, role, model)?));
    }
    if subjects.is_empty() {
        subjects.push((settings.models.for_role(role.unwrap_or("supervisor")).model, settings));
    }
    let of = subjects.len();
    let mut evaluation = Evaluation {
        suite: suite.name.clone(),
        role: args.role.clone(),
        judge: args.judge.clone(),
        seed: args.seed,
        ..Evaluation::default()
    };
    for (model, mut settings) in subjects {
        // What one model learned must not help the next one.
        settings.swarm.experience &= of == 1;
        let opening = opening::runtime(settings, args.quiet);
        let runtime = signals.unless_stopped(opening).await??;
        let adding = add(&runtime, &evaluator, &model, args, &mut evaluation);
        let added = signals.unless_stopped(adding).await;
        let is_last = evaluation.models.len() == of;
        let kept = if is_last { runtime.keep_evaluation(&evaluation).await } else { Ok(true) };
        let _ = signals.unless_aborted(runtime.close()).await;
        added??;
        match kept {
            Ok(true) => {}
            Ok(false) => {
                output::note("the figures are not stored: the threads are in memory, or encrypted");
            }
            Err(error) => output::warning(&format!("the figures are not stored: {error}")),
        }
    }
    Ok(evaluation)
}

async fn add(
    runtime: &Runtime,
    evaluator: &Evaluator<'_>,
    model: &str,
    args: &Args,
    evaluation: &mut Evaluation,
) -> Result<()> {
    let progress = |case: &Case, run: u32, ended: &RunRecord| {
        if !args.quiet {
            let RunRecord { passed, seconds, .. } = *ended;
            let of = evaluator.suite.repeat_of(case);
            let Case { name, .. } = case;
            let mark = mark(passed);
            output::note(&format!("{mark} {name} {run}/{of} with {model} ({seconds:.1} s)"));
        }
    };
    let record = runtime.evaluate(evaluator, model, progress).await?;
    let mut figures = Figures::of(&record, args.seed);
    if let Some(first) = evaluation.records.first().filter(|_| args.judge.is_some()) {
        let outcomes = evaluator.judge.compare_all(evaluator.suite, &record, first).await;
        figures.beside_first = Some(Preference::of(&outcomes));
    }
    figures.judging = evaluator.judge.take_cost();
    evaluation.models.push(figures);
    evaluation.records.push(record);
    Ok(())
}

/// Loads the settings with a model, written as `NAME` or `NAME@URL`, for a role or for all.
fn with_model(globals: &Globals, role: Option<&str>, given: &str) -> Result<Settings> {
    let address = given.rfind("@http://").or_else(|| given.rfind("@https://"));
    let (model, url) = address.map_or((given, None), |at| (&given[..at], Some(&given[at + 1..])));
    let model = model.to_owned();
    let url = url.map(str::to_owned);
    globals.settings_with(match role {
        Some(role) => {
            let role = role.to_owned();
            Overrides {
                model: None,
                of_role: Some(RoleModel { role, model, url }),
                ..globals.overrides()
            }
        }
        None => {
            let base = globals.overrides();
            Overrides { model: Some(model), model_url: url.or(base.model_url.clone()), ..base }
        }
    })
}

fn mark(is_passed: bool) -> &'static str {
    if is_passed { "✓" } else { "✗" }
}

fn drawn(evaluation: &Evaluation, baseline: Option<&Evaluation>) -> String {
    let mut text = figures(evaluation);
    for record in &evaluation.records {
        text.push_str(&cases(record, baseline));
    }
    text
}

fn figures(evaluation: &Evaluation) -> String {
    let percent = |one: &Estimate| {
        format!("{:.0} % ({:.0} to {:.0})", one.mean * 100.0, one.low * 100.0, one.high * 100.0)
    };
    let usd = |mean: f64, more: &str| {
        if mean > 0.0 { format!("{mean:.4}{more}") } else { "-".to_owned() }
    };
    let head = [
        "MODEL",
        "PASSED",
        "USD",
        "TOKENS",
        "CALLS",
        "REPAIRS",
        "P50 MS",
        "P95 MS",
        "JUDGED",
        "JUDGE USD",
        "JUDGE TOKENS",
    ];
    let rows = evaluation.models.iter().map(|one| {
        let judged = one.beside_first.as_ref().map(|beside| {
            let Preference { won, tied, lost, .. } = beside;
            format!("{won} won, {tied} tied, {lost} lost: {}", percent(&beside.score))
        });
        let Estimate { mean, low, high } = one.cost_usd;
        // One run has no interval.
        let range = if one.runs > 1 { format!(" ({low:.4} to {high:.4})") } else { String::new() };
        [
            one.model.clone(),
            percent(&one.passed),
            usd(mean, &range),
            format!("{:.0}", one.tokens.mean),
            one.calls.to_string(),
            one.repairs.to_string(),
            format!("{:.0}", one.latency_p50_ms),
            format!("{:.0}", one.latency_p95_ms),
            judged.unwrap_or_default(),
            usd(one.judging.cost_usd, ""),
            one.judging.tokens.to_string(),
        ]
    });
    let table = output::table(head, rows.collect());
    format!("{table}\n95 % intervals in parentheses, seed {}\n", evaluation.seed)
}

fn cases(record: &Record, baseline: Option<&Evaluation>) -> String {
    let head = ["", "CASE", "PASSED", "SECONDS", "TOKENS", "CALLS", "BASELINE"];
    let rows = record.cases.iter().map(|case| {
        [
            mark(case.passed()).to_owned(),
            case.name.clone(),
            format!("{} of {}", case.passed_runs(), case.runs.len()),
            format!("{:.1}", case.mean(|run| run.seconds)),
            format!("{:.0}", case.mean(|run| run.tokens as f64)),
            format!("{:.1}", case.mean(|run| run.tool_calls as f64)),
            change(case, record, baseline).map(words).unwrap_or_default(),
        ]
    });
    let mut text = format!("\n{}\n{}", record.model, output::table(head, rows.collect()));
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

/// Compares a case with the baseline: with the same model's record, or with the first one.
fn change(case: &CaseRecord, record: &Record, baseline: Option<&Evaluation>) -> Option<Change> {
    let records = &baseline?.records;
    let same = records.iter().find(|one| one.model == record.model);
    Some(Change::of(case, same.or(records.first())?))
}

fn words(change: Change) -> String {
    let (word, ratio) = match change {
        Change::New => ("new", None),
        Change::Since(Ordering::Less, ratio) => ("worse", ratio),
        Change::Since(Ordering::Equal, ratio) => ("same", ratio),
        Change::Since(Ordering::Greater, ratio) => ("better", ratio),
    };
    ratio.map_or(word.to_owned(), |ratio| format!("{word}, tokens × {ratio:.2}"))
}

fn read_evaluation(path: &Path) -> Result<Evaluation> {
    let text = files::read(path)?;
    // Earlier versions saved the record of one model.
    if let Ok(record) = serde_json::from_str::<Record>(&text) {
        let suite = record.suite.clone();
        return Ok(Evaluation { suite, records: vec![record], ..Evaluation::default() });
    }
    serde_json::from_str(&text).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Suite { path: path.to_owned(), reason: error.to_string() }
}
