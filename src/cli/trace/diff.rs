//! `trace diff A B`: two runs side by side.

use std::collections::HashMap;
use std::fmt::Write as _;

use chrono::TimeDelta;
use serde::Serialize;

use super::words::{TEXT, dollars, length, line};
use super::{Detail, head_line, read};
use crate::cli::diff::Sides;
use crate::cli::output::brief;
use crate::cli::{Error, Exit, Result, opening, output};
use perihelion_runtime::{Threads, Trace, TraceHead};
use perihelion_settings::config::Settings;
use perihelion_telemetry::reading::{Change, Pair, PairKind, TraceDiff};
use perihelion_telemetry::{About, Span, SpanId, Spent};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion trace diff weekly-report what-if
  perihelion trace diff weekly-report weekly-report --run 1 --run 2
  perihelion trace diff weekly-report what-if --json

The spans of both traces are aligned as trees: ~ marks a difference, - a span only in A, + a span only in B. \
Time, tokens and cost are shown, but are not differences. Different texts are shown like git diff --word-diff. \
`perihelion diff` compares the stored steps instead. Without --run, the newest runs are compared.

Exit codes, as in diff(1):
  0  no differences
  1  differences
  2  invalid usage, or a trace cannot be read")]
pub(super) struct Args {
    #[command(flatten)]
    sides: Sides,
    /// Include spans without differences
    #[arg(long, conflicts_with = "json")]
    all: bool,
}

#[derive(Serialize)]
struct Compared<'a> {
    same: bool,
    a: &'a TraceHead,
    b: &'a TraceHead,
    #[serde(flatten)]
    diff: &'a TraceDiff,
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit> {
    let Args { sides, all } = args;
    let [run_a, run_b] = sides.runs()?;
    let both = async |threads: &Threads| {
        let a = read(threads, &settings, &sides.a, run_a).await?;
        Ok((a, read(threads, &settings, &sides.b, run_b).await?))
    };
    // Trouble is 2, since 1 says that they differ.
    let both = opening::reading(&settings, both).await;
    let (a, b) = both.map_err(|error| Error::CannotCompare(Box::new(error)))?;
    let diff = a.compare(&b);
    let compared = Compared { same: diff.is_same(), a: &a.head, b: &b.head, diff: &diff };
    let detail = if all { Detail::All } else { Detail::Folded };
    output::either(sides.json, &compared, || render(&a, &b, &diff, detail))?;
    Ok(if diff.is_same() { Exit::Done } else { Exit::Failed })
}

fn render(a: &Trace, b: &Trace, diff: &TraceDiff, detail: Detail) -> String {
    let mut out = format!("A  {}\nB  {}\n\n", head_line(a), head_line(b));
    out.push_str(&totals(a, b));
    let count = |kind| diff.count(kind);
    let _ = writeln!(
        out,
        "\n{}, {}, {}, {}\n",
        spans(count(PairKind::Same), "equal"),
        spans(count(PairKind::Changed), "different"),
        spans(count(PairKind::OnlyA), "only in A"),
        spans(count(PairKind::OnlyB), "only in B")
    );
    let by_id = |trace: &Trace| -> HashMap<SpanId, Span> {
        trace.spans.iter().map(|span| (span.span_id, span.clone())).collect()
    };
    let mut tree = Tree { a: by_id(a), b: by_id(b), alike: 0, depth: 0, out };
    for (at, pair) in diff.pairs.iter().enumerate() {
        // An equal pair is shown if a pair below it differs.
        let below = diff.pairs[at + 1..].iter().take_while(|below| below.depth > pair.depth);
        let leads = below.into_iter().any(|below| below.kind != PairKind::Same);
        if pair.kind == PairKind::Same && detail == Detail::Folded && !leads {
            tree.skip(pair.depth);
            continue;
        }
        tree.skipped();
        tree.pair(pair);
    }
    tree.skipped();
    tree.out
}

fn spans(count: usize, what: &str) -> String {
    format!("{} {what}", output::count(count as u64, "span"))
}

fn longer(a: TimeDelta, b: TimeDelta) -> String {
    let sign = if b < a { "-" } else { "+" };
    format!("{sign}{}", length((b - a).abs()))
}

fn totals(a: &Trace, b: &Trace) -> String {
    let sum = |trace: &Trace| {
        let root = trace.spans.first();
        let spent: Spent = root.and_then(|root| root.spent).unwrap_or_default();
        let took = root.map(|root| root.duration()).unwrap_or_default();
        let failed = trace.spans.iter().filter(|span| span.failed()).count();
        let calls: u32 = root.map_or(0, |root| match &root.about {
            About::Workflow { tools, .. } => tools.iter().map(|tool| tool.calls).sum(),
            _ => 0,
        });
        (took, spent, failed, calls)
    };
    let (took_a, spent_a, failed_a, tools_a) = sum(a);
    let (took_b, spent_b, failed_b, tools_b) = sum(b);
    let dearer = |a: i128, b: i128| match b - a {
        0 => String::new(),
        more if more > 0 => format!("+{}", dollars(more)),
        less => dollars(less),
    };
    let more = |a: i128, b: i128| if a == b { String::new() } else { format!("{:+}", b - a) };
    let number =
        |what: &str, a: i128, b: i128| [what.to_owned(), a.to_string(), b.to_string(), more(a, b)];
    let mut rows = vec![
        ["time".to_owned(), length(took_a), length(took_b), longer(took_a, took_b)],
        number("model calls", spent_a.calls.into(), spent_b.calls.into()),
        number("tool calls", tools_a.into(), tools_b.into()),
        number("input tokens", spent_a.input_tokens.into(), spent_b.input_tokens.into()),
        number("output tokens", spent_a.output_tokens.into(), spent_b.output_tokens.into()),
        number("errors", failed_a as i128, failed_b as i128),
    ];
    if let (Some(a), Some(b)) = (spent_a.nano_usd, spent_b.nano_usd) {
        let a = i128::from(a);
        let b = i128::from(b);
        rows.push(["cost".to_owned(), dollars(a), dollars(b), dearer(a, b)]);
    }
    format!("{}\n", output::table(["", "A", "B", "B - A"], rows))
}

struct Tree {
    a: HashMap<SpanId, Span>,
    b: HashMap<SpanId, Span>,
    /// Equal pairs since the last line, and their start.
    alike: usize,
    depth: usize,
    out: String,
}

impl Tree {
    fn skip(&mut self, depth: usize) {
        if self.alike == 0 || depth < self.depth {
            self.depth = depth;
        }
        self.alike += 1;
    }

    fn skipped(&mut self) {
        if self.alike > 0 {
            let indent = "  ".repeat(self.depth);
            let _ = writeln!(self.out, "  {indent}… {}", spans(self.alike, "equal"));
            self.alike = 0;
        }
    }

    fn pair(&mut self, pair: &Pair) {
        let a = pair.a.and_then(|id| self.a.get(&id));
        let b = pair.b.and_then(|id| self.b.get(&id));
        let sign = match pair.kind {
            PairKind::Same => ' ',
            PairKind::Changed => '~',
            PairKind::OnlyA => '-',
            PairKind::OnlyB => '+',
        };
        let indent = "  ".repeat(pair.depth);
        let Some(shown) = b.or(a) else { return };
        let longer = match (a, b) {
            (Some(a), Some(b)) => format!(" ({})", longer(a.duration(), b.duration())),
            _ => String::new(),
        };
        let _ = writeln!(self.out, "{sign} {indent}{}{longer}", line(shown));
        for change in &pair.changes {
            let _ = writeln!(self.out, "{sign} {indent}    {}", change_line(change));
        }
    }
}

fn change_line(change: &Change) -> String {
    match &change.words {
        Some(words) => format!("{}: {}", change.what, brief(words, 2 * TEXT)),
        None => format!("{}: {} → {}", change.what, brief(&change.a, TEXT), brief(&change.b, TEXT)),
    }
}
