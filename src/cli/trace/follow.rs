//! `trace --follow`: a run printed line by line as it runs, whichever process runs it.
//!
//! Everything comes from the database: a span is printed when it can no longer change, a node also at its start.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::tree::{head, noted, shares, words};
use super::words::{TEXT, length, line};
use crate::cli::output::brief;
use crate::cli::{Error, Exit, Result, Signals, output};
use perihelion_engine::checkpoint::{RunStatus, Store, ThreadInfo};
use perihelion_engine::clock;
use perihelion_runtime::{Threads, Trace, is_under_way};
use perihelion_settings::config::Settings;
use perihelion_telemetry::{About, Span, SpanId};

const INTERVAL: Duration = Duration::from_millis(250);

/// Prints a run until it ends, its process is gone, or the reader stops.
pub(super) async fn run(
    threads: &Threads,
    settings: &Settings,
    name: &str,
    run: Option<u32>,
    json: bool,
) -> Result<Exit> {
    let signals = Signals::listen()?;
    let thread = threads.find(Some(name)).await?;
    let store = threads.store().as_ref();
    let read = async |run| {
        let trace = threads.traces(settings).read(thread, run).await;
        trace.map_err(|error| Error::from(error).about(name))
    };
    let mut printed = Printed { json, ..Printed::default() };
    let mut run = run;
    let mut status = None;
    let mut seen = None;
    loop {
        // Before the trace: what is written in between is seen at the next look.
        let info = store.info(thread).await.map_err(|error| Error::from(error).about(name))?;
        let runs = store.runs(thread).await?;
        let newest = runs.last().map(|row| row.number);
        let mark = (info.fence, info.head, newest, info.updated_at, effects(store, &info).await?);
        if newest.is_none() && run.is_none() {
            if seen.replace(mark).is_none() {
                output::note("the thread has not run yet; waiting for its first run");
            }
        } else {
            if seen.as_ref() != Some(&mark) {
                seen = Some(mark);
                let trace = read(run).await?;
                // A new question meanwhile is not what was asked for.
                run = Some(trace.newest_run());
                status = trace.spans.first().and_then(last_status);
                printed.tell(&trace, false)?;
            }
            if status != Some(RunStatus::Running) || newest > run {
                break;
            }
            if !is_under_way(&info) {
                output::note(&format!(
                    "no process is running this thread; continue with `perihelion resume {name}`"
                ));
                break;
            }
        }
        tokio::select! {
            () = signals.stopped() => break,
            () = clock::sleep(INTERVAL) => {}
        }
    }
    if run.is_some() {
        // With what was written between the last look and the end.
        printed.end(&read(run).await?)?;
    }
    Ok(Exit::Done)
}

fn last_status(root: &Span) -> Option<RunStatus> {
    match &root.about {
        About::Workflow { runs, .. } => runs.last().map(|run| run.status),
        _ => None,
    }
}

/// Counts the recorded effects of the active step, and those that have ended.
async fn effects(store: &dyn Store, info: &ThreadInfo) -> Result<(usize, usize)> {
    let effects = store.effects(info.id, Some(info.head + 1)).await?;
    Ok((effects.len(), effects.iter().filter(|effect| effect.ended_at.is_some()).count()))
}

#[derive(Default)]
struct Printed {
    json: bool,
    head: bool,
    begun: HashSet<SpanId>,
    over: HashSet<SpanId>,
}

struct Line<'a> {
    span: &'a Span,
    over: bool,
}

impl Line<'_> {
    fn at(&self) -> DateTime<Utc> {
        if self.over { self.span.end } else { self.span.start }
    }
}

impl Printed {
    /// Prints the new spans of a trace, in the order in which they happened.
    ///
    /// At the `end`, also open questions.
    fn tell(&mut self, trace: &Trace, end: bool) -> Result<()> {
        let Some(root) = trace.spans.first() else { return Ok(()) };
        if !self.head && !self.json {
            output::text(&head(trace))?;
        }
        self.head = true;
        let mut lines: Vec<Line<'_>> = Vec::new();
        for span in &trace.spans[1..] {
            if self.over.contains(&span.span_id) {
                continue;
            }
            let waits = end && matches!(span.about, About::Question { .. });
            if waits || is_over(span, committed(trace, span)) {
                lines.push(Line { span, over: true });
            } else if matches!(span.about, About::Agent { .. }) && self.begun.insert(span.span_id) {
                lines.push(Line { span, over: false });
            }
        }
        // What is over at the same moment was so from the inside out.
        lines.sort_by_key(|line| (line.at(), std::cmp::Reverse(depth(&trace.spans, line.span))));
        for line in lines {
            self.say(trace, root, &line)?;
        }
        Ok(())
    }

    fn end(&mut self, trace: &Trace) -> Result<()> {
        self.tell(trace, true)?;
        let Some(root) = trace.spans.first() else { return Ok(()) };
        if self.json {
            return output::json(root);
        }
        let mut text = format!("{}\n", line(root));
        for (what, content) in words(root) {
            text.push_str(&format!("   {what}: {}\n", brief(&content, TEXT)));
        }
        text.push_str(&shares(&trace.head.overview));
        output::text(&text)
    }

    fn say(&mut self, trace: &Trace, root: &Span, printed: &Line<'_>) -> Result<()> {
        let Line { span, over } = *printed;
        if over {
            self.over.insert(span.span_id);
        }
        if self.json {
            return if over { output::json(span) } else { Ok(()) };
        }
        let since = format!("+{}", length(printed.at() - root.start));
        let indent = "  ".repeat(depth(&trace.spans, span).saturating_sub(1));
        if !over {
            let node = span.node.as_deref().unwrap_or_default();
            return output::text(&format!("{since:>10}  {indent}▸ {}", brief(node, TEXT)));
        }
        let mut text = format!("{since:>10}  {indent}{}\n", line(span));
        for (what, content) in words(span) {
            text.push_str(&format!("{:>10}  {indent}  {what}: {}\n", "", brief(&content, TEXT)));
        }
        for note in trace.head.notes.iter().filter(|note| note.span_id == span.span_id) {
            let what = noted(note.kind);
            text.push_str(&format!("{:>10}  {indent}  {what}: {}\n", "", brief(&note.text, TEXT)));
        }
        output::text(&text)
    }
}

/// Returns whether a span can no longer change: its step is committed, or it is a call with an outcome.
fn is_over(span: &Span, committed: u64) -> bool {
    let settled = match &span.about {
        About::Chat { .. } | About::Tool { .. } => true,
        // A verdict that cannot be used may be asked for again.
        About::Reflection { verdict, .. } => verdict.as_deref().is_some_and(|v| v != "UNVERIFIED"),
        About::Question { answered, .. } => *answered,
        About::Workflow { .. } => return last_status(span) != Some(RunStatus::Running),
        About::Transition { .. } | About::Agent { .. } | About::Stage { .. } => false,
    };
    !span.open && (settled || span.step <= committed)
}

/// Returns the newest committed step of a span's thread, from the thread's roots.
fn committed(trace: &Trace, span: &Span) -> u64 {
    let roots = trace.spans.iter().filter(|one| matches!(one.about, About::Workflow { .. }));
    roots.filter(|root| root.within == span.within).map(|root| root.step).max().unwrap_or(0)
}

fn depth(spans: &[Span], span: &Span) -> usize {
    let parent = |span: &Span| spans.iter().find(|one| Some(one.span_id) == span.parent);
    std::iter::successors(parent(span), |span| parent(span)).count()
}
