//! Draws a trace as a tree of lines, and below it what each node took.

use std::collections::HashMap;
use std::fmt::Write as _;

use chrono::TimeDelta;

use super::words::{TEXT, cost, length, line, mark, ran, spent};
use crate::cli::output::{self, brief};
use perihelion_runtime::Trace;
use perihelion_telemetry::reading::{Note, NoteKind, Overview};
use perihelion_telemetry::{About, Span, SpanId, Status};

/// Largest number of spans that is drawn without folding.
const SHORT: usize = 120;

/// How much of a long trace is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// Work that went well becomes one line when the trace is long; the path to an error stays open.
    Folded,
    All,
}

/// Draws a trace; texts of models and tools cannot control the terminal.
pub(super) fn render(trace: &Trace, detail: Detail) -> String {
    let Some(root) = trace.spans.first() else { return String::new() };
    let mut children: HashMap<SpanId, Vec<&Span>> = HashMap::new();
    for span in &trace.spans[1..] {
        children.entry(span.parent.unwrap_or(root.span_id)).or_default().push(span);
    }
    for list in children.values_mut() {
        list.sort_by_key(|span| span.start);
    }
    let mut notes: HashMap<SpanId, Vec<&Note>> = HashMap::new();
    for note in &trace.head.notes {
        notes.entry(note.span_id).or_default().push(note);
    }
    let fold = detail == Detail::Folded && trace.spans.len() > SHORT;
    let mut tree = Tree { children, notes, fold, out: head(trace) };
    tree.top(root);
    tree.below(root, "");
    tree.out.push_str(&shares(&trace.head.overview));
    tree.out
}

pub(super) fn head(trace: &Trace) -> String {
    let mut line = format!("thread {}", trace.head.thread_id);
    if let Some(title) = &trace.head.title {
        let _ = write!(line, " ({})", brief(title, TEXT));
    }
    format!("{line}\ntrace  {}\n\n", trace.head.trace_id)
}

/// Shows the usage per agent, if there is more than one.
pub(super) fn shares(overview: &Overview) -> String {
    if overview.agents.len() < 2 {
        return String::new();
    }
    let priced =
        overview.agents.iter().filter_map(|share| share.spent).any(|s| s.nano_usd.is_some());
    let rows = overview.agents.iter().map(|share| {
        let spent = share.spent.unwrap_or_default();
        let judged = match (share.judged, share.rejected) {
            (0, _) => String::new(),
            (judged, 0) => judged.to_string(),
            (judged, rejected) => format!("{judged} ({rejected} rejected)"),
        };
        let turns = match share.failed {
            0 => share.turns.to_string(),
            failed => format!("{} ({failed} failed)", share.turns),
        };
        [
            brief(&share.agent, TEXT),
            turns,
            length(TimeDelta::milliseconds(share.milliseconds)),
            spent.calls.to_string(),
            share.tool_calls.to_string(),
            judged,
            format!("{} → {}", spent.input_tokens, spent.output_tokens),
            cost(spent).unwrap_or_default(),
        ]
    });
    let heads = ["NODE", "TURNS", "TIME", "CALLS", "TOOLS", "REFLECTIONS", "TOKENS"];
    if priced {
        let [a, b, c, d, e, f, g] = heads;
        format!("\n{}\n", output::table([a, b, c, d, e, f, g, "COST"], rows.collect()))
    } else {
        let rows = rows.map(|[a, b, c, d, e, f, g, _]| [a, b, c, d, e, f, g]).collect();
        format!("\n{}\n", output::table(heads, rows))
    }
}

struct Tree<'a> {
    children: HashMap<SpanId, Vec<&'a Span>>,
    notes: HashMap<SpanId, Vec<&'a Note>>,
    fold: bool,
    out: String,
}

impl Tree<'_> {
    fn top(&mut self, root: &Span) {
        let About::Workflow { graph, runs, question, answer, .. } = &root.about else { return };
        let _ = writeln!(
            self.out,
            "{} {graph} · {} · {}{}",
            mark(root),
            ran(runs, root.open),
            length(root.duration()),
            spent(root.spent)
        );
        self.text("│  ", "asked", question.as_deref());
        if let Status::Error { message } = &root.status {
            self.text("│  ", "because", Some(message));
        }
        self.text("│  ", "answered", answer.as_deref());
    }

    fn below(&mut self, parent: &Span, indent: &str) {
        let list = self.children.remove(&parent.span_id).unwrap_or_default();
        let newest = list.len().saturating_sub(1);
        for (index, span) in list.into_iter().enumerate() {
            let (branch, onward) =
                if index == newest { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let _ = writeln!(self.out, "{indent}{branch}{}", line(span));
            let deeper = format!("{indent}{onward}");
            if self.fold && parent.parent.is_none() && !self.failed_below(span) {
                let hidden = self.count_below(span);
                if hidden > 0 {
                    let _ = writeln!(self.out, "{deeper}… {hidden} more (--all shows them)");
                }
                continue;
            }
            let more = self.children.get(&span.span_id).is_some_and(|list| !list.is_empty());
            let below = format!("{deeper}{}", if more { "│  " } else { "   " });
            for (what, content) in words(span) {
                self.text(&below, what, Some(&content));
            }
            for note in self.notes.remove(&span.span_id).unwrap_or_default() {
                self.text(&below, noted(note.kind), Some(&note.text));
            }
            self.below(span, &deeper);
        }
    }

    fn text(&mut self, indent: &str, what: &str, text: Option<&str>) {
        let text = text.map(|text| brief(text, TEXT)).unwrap_or_default();
        if !text.is_empty() {
            let _ = writeln!(self.out, "{indent}{what}: {text}");
        }
    }

    fn failed_below(&self, span: &Span) -> bool {
        let list = self.children.get(&span.span_id);
        span.failed() || list.into_iter().flatten().any(|span| self.failed_below(span))
    }

    fn count_below(&self, span: &Span) -> usize {
        let list = self.children.get(&span.span_id);
        list.into_iter().flatten().map(|span| 1 + self.count_below(span)).sum()
    }
}

pub(super) fn noted(kind: NoteKind) -> &'static str {
    match kind {
        NoteKind::Loop => "again",
        NoteKind::Repair => "repair",
        NoteKind::Changed => "changed",
    }
}

/// Returns the reasoning, the requests and the answers, if there are any.
pub(super) fn words(span: &Span) -> Vec<(&'static str, String)> {
    let mut words = Vec::new();
    let mut say = |what, text: &Option<String>| {
        words.extend(text.as_ref().map(|text| (what, text.clone())));
    };
    match &span.about {
        About::Workflow { question, answer, .. } => {
            say("asked", question);
            say("answered", answer);
        }
        About::Transition { thought, .. } => say("thought", thought),
        About::Agent { task, error, output, .. } => {
            say("task", task);
            say("failed", error);
            if error.is_none() {
                say("output", output);
            }
        }
        About::Stage { error, .. } => say("failed", error),
        About::Tool { arguments, result, .. } => {
            say("with", arguments);
            if span.failed() {
                say("error", result);
            }
        }
        About::Reflection { feedback, .. } => say("feedback", feedback),
        About::Question { question, answer, .. } => {
            say("asked", question);
            say("answered", answer);
        }
        About::Chat { .. } => {}
    }
    // What has a text of its own says more than the status does.
    let reported = matches!(
        &span.about,
        About::Agent { error: Some(_), .. }
            | About::Stage { error: Some(_), .. }
            | About::Tool { result: Some(_), .. }
    );
    if let (Status::Error { message }, false) = (&span.status, reported) {
        words.push(("because", message.clone()));
    }
    words
}
