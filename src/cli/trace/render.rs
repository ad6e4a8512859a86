//! Draws a trace as a tree of lines.

use std::collections::HashMap;
use std::fmt::Write as _;

use chrono::TimeDelta;

use crate::checkpoint::RunStatus;
use crate::llm::Usage;
use crate::runtime::Trace;
use crate::telemetry::{About, Reason, RunMark, Span, SpanId, Status};

/// Spans up to which nothing is folded.
const SHORT: usize = 120;

/// Characters of a text somebody wrote that stand in a line.
const TEXT: usize = 160;

/// How much of a long trace is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// Work that went well becomes one line when the trace is long; the path to an error stays open.
    Folded,
    All,
}

/// Draws a trace; what models and tools wrote cannot steer the terminal.
pub(super) fn render(trace: &Trace, detail: Detail) -> String {
    let Some(root) = trace.spans.first() else { return String::new() };
    let mut children: HashMap<SpanId, Vec<&Span>> = HashMap::new();
    for span in &trace.spans[1..] {
        children.entry(span.parent.unwrap_or(root.span_id)).or_default().push(span);
    }
    for list in children.values_mut() {
        list.sort_by_key(|span| span.start);
    }
    let fold = detail == Detail::Folded && trace.spans.len() > SHORT;
    let mut tree = Tree { children, fold, out: String::new() };
    tree.head(trace, root);
    tree.below(root, "");
    tree.out
}

struct Tree<'a> {
    children: HashMap<SpanId, Vec<&'a Span>>,
    fold: bool,
    out: String,
}

impl Tree<'_> {
    fn head(&mut self, trace: &Trace, root: &Span) {
        let About::Workflow { graph, runs, usage, question, answer, .. } = &root.about else {
            return;
        };
        let mut line = format!("thread {}", trace.thread_id);
        if let Some(title) = &trace.title {
            let _ = write!(line, " ({})", brief(title, TEXT));
        }
        let _ = writeln!(self.out, "{line}\ntrace  {}\n", trace.trace_id);
        let _ = writeln!(
            self.out,
            "{} {graph} · {} · {}{}",
            mark(root),
            ran(runs, root.open),
            length(root.duration()),
            tokens(*usage)
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
            let (branch, onward) = match index == newest {
                true => ("└─ ", "   "),
                false => ("├─ ", "│  "),
            };
            let _ = writeln!(self.out, "{indent}{branch}{}", line(span));
            let deeper = format!("{indent}{onward}");
            if self.fold && parent.parent.is_none() && !self.failed_below(span) {
                let hidden = self.count_below(span);
                if hidden > 0 {
                    let _ = writeln!(self.out, "{deeper}… {hidden} more (--all shows them)");
                }
                continue;
            }
            self.words(span, &deeper);
            self.below(span, &deeper);
        }
    }

    /// Writes what was thought, asked and said, where there is something to say.
    fn words(&mut self, span: &Span, indent: &str) {
        let more = self.children.get(&span.span_id).is_some_and(|list| !list.is_empty());
        let indent = format!("{indent}{}", if more { "│  " } else { "   " });
        match &span.about {
            About::Transition { thought, .. } => self.text(&indent, "thought", thought.as_deref()),
            About::Agent { task, error, output, .. } => {
                self.text(&indent, "task", task.as_deref());
                self.text(&indent, "failed", error.as_deref());
                if error.is_none() {
                    self.text(&indent, "output", output.as_deref());
                }
            }
            About::Tool { arguments, result, .. } => {
                self.text(&indent, "with", arguments.as_deref());
                if span.failed() {
                    self.text(&indent, "error", result.as_deref());
                }
            }
            About::Reflection { feedback, .. } => {
                self.text(&indent, "feedback", feedback.as_deref())
            }
            _ => {}
        }
        // What has a text of its own says more than the status does.
        let told = matches!(
            &span.about,
            About::Agent { error: Some(_), .. } | About::Tool { result: Some(_), .. }
        );
        if let (Status::Error { message }, false) = (&span.status, told) {
            self.text(&indent, "because", Some(message));
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

fn line(span: &Span) -> String {
    let took = length(span.duration());
    let mut line = format!("{} ", mark(span));
    let _ = match &span.about {
        About::Workflow { graph, .. } => write!(line, "{graph} · {took}"),
        About::Transition { from, to, reason, .. } => {
            let to = if to.is_empty() { "?".to_owned() } else { to.join(", ") };
            let _ = write!(line, "{from} → {to}");
            if !matches!(reason, Reason::Edge | Reason::Undecided) {
                let _ = write!(line, " · {}", reason.as_str().replace('_', " "));
            }
            if span.duration() > TimeDelta::zero() { write!(line, " · {took}") } else { Ok(()) }
        }
        About::Chat { role, model, usage, attempts, .. } => {
            let model = model.as_deref().unwrap_or("no answer");
            let again =
                if *attempts > 1 { format!(" · {attempts} attempts") } else { String::new() };
            write!(line, "chat {model} ({role}) · {took}{}{again}", tokens(*usage))
        }
        About::Agent { agent, reflection_status, attempts, usage, .. } => {
            let _ = write!(line, "{agent}");
            if let Some(status) = reflection_status {
                let _ = write!(line, " · {status}");
            }
            if let Some(attempts) = attempts.filter(|attempts| *attempts > 1) {
                let _ = write!(line, " after {attempts} attempts");
            }
            write!(line, " · {took}{}", tokens(*usage))
        }
        About::Tool { server, tool, attempts, .. } => {
            let dot = if server.is_empty() { "" } else { "." };
            let sent = match attempts {
                0 => " · not sent".to_owned(),
                1 => String::new(),
                more => format!(" · sent {more} times"),
            };
            write!(line, "{server}{dot}{tool} · {took}{sent}")
        }
        About::Reflection { verdict, attempt, of, .. } => {
            let of = of.map(|of| format!(" of {of}")).unwrap_or_default();
            let verdict = verdict.as_deref().unwrap_or("no verdict yet");
            write!(line, "reflect · {verdict} · attempt {attempt}{of} · {took}")
        }
        About::Question { interrupt_kind, answered, .. } => {
            let state = if *answered { "answered" } else { "waits for a person" };
            write!(line, "asked a person ({interrupt_kind}) · {state}")
        }
    };
    brief(&line, 400)
}

fn mark(span: &Span) -> char {
    match (&span.status, span.open, &span.about) {
        (Status::Error { .. }, ..) => '✗',
        (_, true, _) => '…',
        (.., About::Question { .. }) => '?',
        (.., About::Reflection { verdict: Some(verdict), .. }) if verdict == "REJECTED" => '↺',
        (Status::Ok, ..) => '✓',
        (Status::Unset, ..) => '·',
    }
}

/// Says which runs there were and how each ended.
fn ran(runs: &[RunMark], open: bool) -> String {
    let one = |(index, run): (usize, &RunMark)| {
        let word = match run.status {
            RunStatus::Running if open && index + 1 == runs.len() => "not ended",
            RunStatus::Running => "crashed",
            RunStatus::Queued => "handed to the workers",
            RunStatus::Done => "done",
            RunStatus::Interrupted => "waiting for a person",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "stopped",
        };
        format!("run {} {word}", run.number)
    };
    runs.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
}

fn tokens(usage: Usage) -> String {
    match usage == Usage::default() {
        true => String::new(),
        false => format!(" · {} → {} tokens", usage.input_tokens, usage.output_tokens),
    }
}

fn length(duration: TimeDelta) -> String {
    match duration.num_milliseconds() {
        ms if ms < 1_000 => format!("{ms} ms"),
        ms if ms < 60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        ms if ms < 3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        ms => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Makes a text one line of at most so many characters, without what could steer a terminal.
fn brief(text: &str, characters: usize) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(characters) {
        None => line,
        Some(_) => line.chars().take(characters - 1).chain(['…']).collect(),
    }
}
