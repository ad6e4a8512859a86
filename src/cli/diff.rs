//! `perihelion diff`: compares two runs, or two threads, step by step.

use std::collections::HashSet;

use super::{Error, Exit, Result, changes, opening, output};
use perihelion_runtime::{Aspect, Change, Comparison, Pair, Side, Threads, Totals};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --run, whole threads are compared. Differences of IDs, clock readings and durations are ignored. \
The totals of both sides follow at the end.

Examples:
  perihelion diff weekly-report what-if
  perihelion diff weekly-report weekly-report --run 1 --run 2
  perihelion diff weekly-report what-if --json | jq '.steps[0]'

Exit codes, as in diff(1):
  0  no differences
  1  differences
  2  invalid usage, or a thread cannot be read")]
pub struct Args {
    #[command(flatten)]
    sides: Sides,
}

/// The threads to compare, and how to print the comparison.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(super) struct Sides {
    /// First thread, by UUID or name
    #[arg(value_name = "A")]
    pub a: String,
    /// Second thread, by UUID or name. Use the same thread to compare two of its runs
    #[arg(value_name = "B")]
    pub b: String,
    /// Compare only this run. Pass it twice to select one run of A and one of B
    #[arg(long, value_name = "N", num_args = 1, action = clap::ArgAction::Append)]
    run: Vec<u32>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl Sides {
    /// Returns the compared runs of A and B; `None` if none are given.
    pub(super) fn runs(&self) -> Result<[Option<u32>; 2]> {
        match *self.run.as_slice() {
            [] => Ok([None, None]),
            [both] => Ok([Some(both); 2]),
            [a, b] => Ok([Some(a), Some(b)]),
            _ => Err(Error::ManyRuns),
        }
    }
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit> {
    // Trouble is 2, since 1 says that they differ.
    compared(settings, args.sides).await.map_err(|error| Error::CannotCompare(Box::new(error)))
}

async fn compared(settings: Settings, args: Sides) -> Result<Exit> {
    let [run_a, run_b] = args.runs()?;
    let compare = async |threads: &Threads| {
        let a = (threads.find(Some(&args.a)).await?, run_a);
        let b = (threads.find(Some(&args.b)).await?, run_b);
        let compared = threads.traces(&settings).compare(a, b).await;
        compared.map_err(|error| Error::from(error).about(&args.a).about(&args.b))
    };
    let comparison = opening::reading(&settings, compare).await?;
    output::either(args.json, &comparison, || drawn(&comparison))?;
    Ok(if comparison.same { Exit::Done } else { Exit::Failed })
}

fn drawn(comparison: &Comparison) -> String {
    let mut text = String::new();
    if comparison.shared > 0 {
        text.push_str(&format!("{} shared steps\n", comparison.shared));
    }
    let mut same: Vec<&Pair> = Vec::new();
    let mut shown = HashSet::new();
    for pair in &comparison.steps {
        if pair.differences.is_empty() {
            same.push(pair);
            continue;
        }
        text.push_str(&alike(&mut same));
        text.push_str(&differing(pair, &mut shown));
    }
    text.push_str(&alike(&mut same));
    if comparison.same {
        text.push_str("no differences\n");
    }
    let side = |name: &str, side: &Side| {
        let run = side.run.map_or(String::new(), |run| format!(" run {run}"));
        let thread = side.title.clone().unwrap_or_else(|| side.thread_id.to_string());
        format!("{name} {}{run}: {}\n", output::one_line(&thread), totals(&side.totals))
    };
    text.push_str(&side("A", &comparison.a));
    text.push_str(&side("B", &comparison.b));
    text
}

/// Describes any number of equal steps in one line.
fn alike(same: &mut Vec<&Pair>) -> String {
    let text = match (same.first(), same.last()) {
        (Some(first), Some(last)) if same.len() > 1 => {
            format!("steps {} to {}: the same\n", number(first), number(last))
        }
        (Some(one), _) => format!("step {}: the same\n", number(one)),
        _ => String::new(),
    };
    same.clear();
    text
}

fn number(pair: &Pair) -> String {
    match (pair.a, pair.b) {
        (Some(a), Some(b)) if a == b => a.to_string(),
        (a, b) => {
            let shown = |seq: Option<u64>| seq.map_or("–".to_owned(), |seq| seq.to_string());
            format!("{}|{}", shown(a), shown(b))
        }
    }
}

/// A difference that was shown once is not shown again, because requests repeat earlier text.
fn differing(pair: &Pair, shown: &mut HashSet<String>) -> String {
    let nodes = pair.nodes.join(", ");
    let only = match (pair.a, pair.b) {
        (Some(_), None) => "; only in A",
        (None, Some(_)) => "; only in B",
        _ => "",
    };
    let mut text = format!("step {} {nodes}{only}\n", number(pair));
    if !only.is_empty() {
        return text;
    }
    for difference in &pair.differences {
        let of = &difference.of;
        let title = match difference.aspect {
            Aspect::Nodes => "ran".to_owned(),
            Aspect::Observed => format!("saw {of}"),
            Aspect::Call => format!("call of {of}"),
            Aspect::Request => format!("request to {of}"),
            Aspect::Result => format!("result of {of}"),
            Aspect::State => format!("{of} wrote"),
            Aspect::Next => "next".to_owned(),
        };
        let is_new = |change: &&Change| {
            shown
                .insert(serde_json::to_string(&(&change.before, &change.after)).unwrap_or_default())
        };
        let (new, known): (Vec<&Change>, Vec<&Change>) =
            difference.changes.iter().partition(is_new);
        let new: Vec<Change> = new.into_iter().cloned().collect();
        text.push_str(&changes::draw(&new, &title, "  "));
        // Different fields are always listed; repeated text of requests only once.
        let is_named = matches!(difference.aspect, Aspect::State | Aspect::Next);
        if !known.is_empty() && (is_named || new.is_empty()) {
            let paths: Vec<&str> = known.iter().map(|change| change.path.as_str()).collect();
            let paths = output::brief(&paths.join(", "), 100);
            text.push_str(&format!("  {title} {paths}: as above\n"));
        }
    }
    text
}

fn totals(totals: &Totals) -> String {
    let Totals { steps, model_calls, tool_calls, questions, input_tokens, output_tokens, .. } =
        totals;
    let mut text = format!(
        "{steps} steps, {model_calls} model calls, {tool_calls} tool calls, {input_tokens} tokens in and \
         {output_tokens} out, {:.1} s",
        totals.seconds
    );
    if *questions > 0 {
        text.push_str(&format!(", {questions} questions"));
    }
    if totals.cost_usd > 0.0 {
        text.push_str(&format!(", {:.4} USD", totals.cost_usd));
    }
    text
}
