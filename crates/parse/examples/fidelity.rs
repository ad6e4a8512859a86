//! Compares what is parsed with the ground truth of docling's fixtures, word by word, and holds it to its goals.
//!
//! `cargo run --example fidelity -- DIR [NAME]`, where DIR is docling's `tests/data`; NAME shows the text of one file. Each
//! file is read by a process of its own with the bounds that documents are parsed under, which says what it took.
#![expect(clippy::print_stdout, reason = "a report for a person")]

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use nix::sys::resource::{UsageWho, getrusage};
use perihelion_parse::child::{Bounds, answer, read};
use perihelion_parse::{Error, Limits, Parsed, Warning};

/// Endings, and the mean that must be reached where there is a goal.
const GOALS: [(&str, Option<f64>); 7] = [
    ("docx", Some(0.95)),
    ("xlsx", Some(0.95)),
    ("html", Some(0.93)),
    ("pdf", Some(0.94)),
    ("pptx", None),
    ("csv", None),
    ("md", None),
];

/// Below this, a page that is written from right to left must be said to be doubtful.
const RIGHT_TO_LEFT: f64 = 0.94;

/// Named as the process that parses one file.
const CHILD: &str = "--child";

/// What a process that parsed took.
#[derive(Clone, Copy, Default)]
struct Took {
    milliseconds: i64,
    kib: i64,
}

impl Took {
    fn most(self, other: Self) -> Self {
        Self {
            milliseconds: self.milliseconds.max(other.milliseconds),
            kib: self.kib.max(other.kib),
        }
    }
}

impl std::fmt::Display for Took {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>6} ms {:>4} MiB", self.milliseconds, self.kib / 1024)
    }
}

fn words(text: &str) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        *words.entry(word.to_lowercase()).or_insert(0) += 1;
    }
    words
}

fn f1(own: &str, truth: &str) -> f64 {
    let own = words(own);
    let truth = words(truth);
    let shared: usize =
        own.iter().map(|(word, count)| *count.min(truth.get(word).unwrap_or(&0))).sum();
    let all: usize = own.values().sum::<usize>() + truth.values().sum::<usize>();
    if all == 0 { 1.0 } else { 2.0 * shared as f64 / all as f64 }
}

/// A text without what stands for pictures and for formulas that were not read, and with its escapes undone.
fn plain(text: &str) -> String {
    text.replace("<!-- image -->", " ")
        .replace("<!-- formula-not-decoded -->", " ")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
        .replace('\\', "")
}

/// Parses standard input in this process, and says on standard error what that took.
fn parse_here(name: &str) -> std::io::Result<()> {
    answer(name, &Limits::default(), Bounds::default())?;
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let user = usage.user_time();
    let system = usage.system_time();
    let milliseconds =
        (user.tv_sec() + system.tv_sec()) * 1000 + (user.tv_usec() + system.tv_usec()) / 1000;
    std::io::stderr().write_all(format!("\n{milliseconds} {}", usage.max_rss()).as_bytes())
}

/// Has a process of its own parse a file.
fn parse_apart(path: &Path, name: &str) -> std::io::Result<(Result<Parsed, Error>, Took)> {
    let mut child = Command::new(std::env::current_exe()?)
        .args([CHILD, name])
        .stdin(Stdio::from(std::fs::File::open(path)?))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let errors = child.stderr.take();
    let printed = std::thread::spawn(move || {
        let mut printed = String::new();
        errors.map(|mut errors| errors.read_to_string(&mut printed));
        printed
    });
    let output = child.wait_with_output()?;
    let printed = printed.join().unwrap_or_default();
    let mut figures = printed.lines().last().unwrap_or_default().split(' ').map(str::parse);
    let mut figure = || figures.next().and_then(Result::ok).unwrap_or_default();
    let took = Took { milliseconds: figure(), kib: figure() };
    Ok((read(&output.stdout, &output.status.to_string()), took))
}

fn truth_of(root: &Path, format: &str, path: &Path) -> Option<String> {
    let directory = root.join(format).join("groundtruth");
    let stem = path.file_stem()?.to_string_lossy();
    let name = path.file_name()?.to_string_lossy();
    let wanted = [format!("{name}.md"), format!("{stem}.md")];
    wanted.iter().find_map(|name| std::fs::read_to_string(directory.join(name)).ok())
}

fn says_doubtful(warning: &Warning) -> bool {
    matches!(warning, Warning::DoubtfulOrder { .. } | Warning::DoubtfulLetters { .. })
}

/// What is reported of one kind of documents.
#[derive(Default)]
struct Report {
    scores: Vec<f64>,
    /// Sources without ground truth, and ground truth without a source.
    skipped: Vec<String>,
    most: Took,
    missed: Vec<String>,
}

fn sources(root: &Path, format: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join(format).join("sources"));
    let mut paths: Vec<_> = entries.into_iter().flatten().flatten().map(|one| one.path()).collect();
    paths.sort();
    paths
}

/// Names the ground truth whose source is not there.
fn without_source(root: &Path, format: &str, paths: &[PathBuf]) -> Vec<String> {
    let names: Vec<String> = paths
        .iter()
        .flat_map(|path| [path.file_stem(), path.file_name()])
        .flatten()
        .map(|name| format!("{}.md", name.to_string_lossy()))
        .collect();
    let entries = std::fs::read_dir(root.join(format).join("groundtruth"));
    let truths = entries.into_iter().flatten().flatten();
    let mut missing: Vec<String> = truths
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".md") && !names.contains(name))
        .map(|name| format!("{name} (no source)"))
        .collect();
    missing.sort();
    missing
}

fn report(root: &Path, format: &str, shown: Option<&str>) -> std::io::Result<Report> {
    let paths = sources(root, format);
    let mut report = Report { skipped: without_source(root, format, &paths), ..Report::default() };
    for path in &paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (own, took) = parse_apart(path, &name)?;
        report.most = report.most.most(took);
        let mut note = match &own {
            Ok(parsed) => parsed.warnings.iter().map(|one| format!("  {one}")).collect(),
            Err(error) => format!("  {error}"),
        };
        if own.as_ref().is_err_and(|error| error.class() == "died") {
            report.missed.push(format!("{name} has an answer"));
        }
        let score = truth_of(root, format, path).map(|truth| match &own {
            Ok(parsed) => f1(&plain(&parsed.text), &plain(&truth)),
            Err(_) => 0.0,
        });
        let printed = score.map_or("     ".to_owned(), |score| format!("{score:.3}"));
        let is_stated = own.as_ref().is_ok_and(|parsed| parsed.warnings.iter().any(says_doubtful));
        if name.starts_with("right_to_left") && score.is_some_and(|one| one < RIGHT_TO_LEFT) {
            note.push_str(if is_stated { "" } else { "  and nothing says that it is doubtful" });
            if !is_stated {
                report
                    .missed
                    .push(format!("{name} reaches {RIGHT_TO_LEFT} or says it is doubtful"));
            }
        }
        println!("{printed} {took}  {format}/{name}{note}");
        match score {
            Some(score) => report.scores.push(score),
            None => report.skipped.push(format!("{name} (no ground truth)")),
        }
        if shown == Some(&name) {
            println!("{}", own.map(|parsed| parsed.text).unwrap_or_default());
        }
    }
    Ok(report)
}

fn main() -> std::io::Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().unwrap_or_else(|| "tests/data".to_owned());
    let shown = arguments.next();
    if root == CHILD {
        return parse_here(&shown.unwrap_or_default()).map(|()| ExitCode::SUCCESS);
    }
    let mut missed = Vec::new();
    let mut lines = Vec::new();
    for (format, goal) in GOALS {
        let report = report(Path::new(&root), format, shown.as_deref())?;
        let pairs = report.scores.len();
        let mean = report.scores.iter().fold(0.0, |sum, score| sum + score) / pairs.max(1) as f64;
        let wanted = goal.map_or(String::new(), |goal| format!(" (≥ {goal})"));
        if goal.is_some_and(|goal| mean < goal) {
            missed.push(format!("{format}: {mean:.3}{wanted}"));
        }
        missed.extend(report.missed);
        lines.push(format!(
            "{format:<4} {mean:.3}{wanted:<9} {pairs:>3} pairs, at most {}; skipped: {}",
            report.most,
            if report.skipped.is_empty() { "none".to_owned() } else { report.skipped.join(", ") },
        ));
    }
    println!("\n{}", lines.join("\n"));
    if missed.is_empty() {
        println!("\nall goals are reached");
        return Ok(ExitCode::SUCCESS);
    }
    println!("\nmissed: {}", missed.join("; "));
    Ok(ExitCode::FAILURE)
}
