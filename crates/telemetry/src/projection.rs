//! From stored rows to spans: a pure function.

use chrono::{DateTime, Utc};

use super::group::Group;
use super::span_builder::{SpanBuilder, trace_id};
use super::task::{Work, spent, tool_counts, wording};
use super::{
    About, Error, Labels, Link, Reason, Result, Rows, RunOfTrace, Span, SpanId, Status, Which, read,
};
use perihelion_engine::checkpoint::{
    EffectKind, EffectRow, RunRow, RunStatus, StepKind, StepRow, Store,
};
use perihelion_engine::graph::{END, StoredWrite, Target};
use perihelion_engine::ids::ThreadId;
use perihelion_llm::Usage;
use perihelion_settings::config::TraceScope;
use perihelion_star::Written;

#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    pub scope: TraceScope,
    /// Include long texts: messages, arguments and results of calls.
    pub content: bool,
    /// Rounds of work that the settings allow an agent, for "attempt N of M".
    pub rounds: Option<u32>,
}

/// The write of one task, from any version.
#[derive(Clone, Debug)]
pub(super) struct WrittenRow {
    pub node: String,
    pub written: Written,
    pub goto: Option<Vec<Target>>,
}

impl From<StoredWrite> for WrittenRow {
    fn from(StoredWrite { node, update, goto }: StoredWrite) -> Self {
        Self { node, written: Written::read(&update), goto }
    }
}

/// Projects the trace that a run belongs to; the root comes first, parents before their children.
///
/// The same rows give the same spans. Span ids are unique, also across the traces of a thread.
///
/// # Errors
/// [`Error::UnknownRun`], [`Error::Truncated`], and [`Error::Store`] when a stored value is damaged.
pub fn project(rows: &Rows, run: u32, view: View) -> Result<Vec<Span>> {
    let group = Group::of(rows, run)?;
    let mut builder = SpanBuilder::new(rows, &group, view);
    draw(&mut builder, rows, &group)?;
    Ok(builder.spans)
}

pub async fn spans_of(
    store: &dyn Store,
    thread: ThreadId,
    run: u32,
    view: View,
) -> Result<Vec<Span>> {
    let (rows, run) = read(store, thread, Which::Number(run)).await?;
    project(&rows, run, view)
}

/// The effects of a thread: those of the drawn trace, and those of neighboring traces.
struct Effects<'a> {
    own: Vec<&'a EffectRow>,
    elsewhere: Vec<&'a EffectRow>,
}

fn draw(builder: &mut SpanBuilder<'_>, rows: &Rows, group: &Group<'_>) -> Result<()> {
    let root = root(builder, rows, group);
    builder.spans.push(root);
    let (own, elsewhere): (Vec<&EffectRow>, Vec<&EffectRow>) =
        rows.effects.iter().partition(|effect| belongs(effect, group));
    let effects = Effects { own, elsewhere };
    let began = group.first().started_at;
    let mut before = rows.steps.iter().rfind(|step| step.seq < group.first_step);
    let of_group = |step: &&StepRow| (group.first_step..=group.last_step).contains(&step.seq);
    for step in rows.steps.iter().filter(of_group) {
        // No work was done between a crash and the run that continues after it.
        let run = group.runs.iter().find(|run| run.id == step.run);
        let began = run.map_or(began, |run| run.started_at.max(began));
        let start = before.map_or(began, |before| before.at.max(began)).min(step.at);
        committed(builder, step, start, &effects)?;
        before = Some(step);
    }
    uncommitted(builder, group, before, &effects)?;
    finish(builder, group);
    Ok(())
}

/// Draws the part of a subgraph's thread in this trace, below the span of the node that ran it.
///
/// Its runs that began while the trace was the newest are in it; a part that was deleted is left out.
pub(super) fn nested(
    builder: &mut SpanBuilder<'_>,
    node: &str,
    step: u64,
    task: u32,
    parent: SpanId,
) -> Result<()> {
    let Some(child) = builder.subgraph(node, step, task) else { return Ok(()) };
    for run in &child.runs {
        let group = match Group::of(child, run.number) {
            Ok(group) => group,
            Err(Error::Truncated { .. }) => continue,
            Err(error) => return Err(error),
        };
        let is_first = group.first().number == run.number;
        if is_first && builder.covers(run.started_at) {
            let mut inner = builder.inside(child, &group, (parent, node));
            draw(&mut inner, child, &group)?;
            for span in &mut inner.spans {
                span.open &= !builder.closed;
            }
            builder.spans.append(&mut inner.spans);
        }
    }
    Ok(())
}

/// Returns whether an effect happened in this trace: it ended, or is still open, while it was the newest.
///
/// Times matter only for the steps that two traces share: the one that this trace continued, and the one that it leaves
/// unfinished. All effects of any other step belong to this trace, with any date.
fn belongs(effect: &EffectRow, group: &Group<'_>) -> bool {
    if !(group.first_step..=group.last_step + 1).contains(&effect.step) {
        return false;
    }
    let since = (effect.step == group.first_step).then(|| group.first().started_at);
    let until = group.until.filter(|_| effect.step > group.last_step);
    let moment = match effect.kind {
        // Asked in this trace, answered by a person whenever they like.
        EffectKind::Interrupt => Some(effect.started_at),
        _ => effect.ended_at,
    };
    match moment {
        Some(moment) => {
            since.is_none_or(|since| moment >= since) && until.is_none_or(|until| moment < until)
        }
        None => until.is_none(),
    }
}

fn root(builder: &SpanBuilder<'_>, rows: &Rows, group: &Group<'_>) -> Span {
    let mark = |run: &RunRow| RunOfTrace {
        number: run.number,
        status: run.status,
        started_at: run.started_at,
    };
    let about = About::Workflow {
        graph: rows.info.graph.clone(),
        runs: group.runs.iter().map(mark).collect(),
        usage: Usage::default(),
        tools: Vec::new(),
        labels: Labels::default(),
        question: None,
        answer: None,
        asks: None,
        note: exit_note(rows, group).filter(|_| builder.view.content),
    };
    let last = group.last();
    let status = match last.status {
        RunStatus::Done => Status::Ok,
        RunStatus::Running | RunStatus::Queued | RunStatus::Interrupted | RunStatus::Cancelled => {
            Status::Unset
        }
        RunStatus::Failed => {
            let is_shown = builder.view.content && group.until.is_none();
            let why = rows.info.error.clone().filter(|_| is_shown);
            Status::Error { message: why.unwrap_or_else(|| "the run failed".to_owned()) }
        }
    };
    let link = |run: &RunRow| {
        let first = Group::of(rows, run.number).map_or(run.number, |group| group.first().number);
        Link {
            trace_id: trace_id(builder.thread, first, builder.view.scope),
            span_id: SpanId::root(builder.thread, first),
            kind: "previous_run",
        }
    };
    // Within a subgraph, the outer root has the link to the previous trace.
    let previous = group.previous.filter(|_| builder.within.is_none());
    Span {
        parent: builder.parent,
        end: last.ended_at.unwrap_or(group.first().started_at),
        status,
        open: !builder.closed,
        links: previous.map(link).into_iter().collect(),
        ..builder.span(builder.root, group.last_step, group.first().started_at, about)
    }
}

/// Returns the answers of people before the trace began, which are its start.
fn exit_note(rows: &Rows, group: &Group<'_>) -> Option<String> {
    let since = group.previous?.ended_at?;
    let until = group.first().started_at;
    let is_new = |row: &&EffectRow| {
        row.kind == EffectKind::Interrupt
            && row.ended_at.is_some_and(|at| since <= at && at <= until)
    };
    let answers = rows.effects.iter().filter(is_new).filter_map(|row| row.outcome.as_ref());
    let answers: Vec<String> = answers.filter_map(wording).collect();
    (!answers.is_empty()).then(|| answers.join("\n"))
}

fn committed(
    builder: &mut SpanBuilder<'_>,
    step: &StepRow,
    start: DateTime<Utc>,
    effects: &Effects<'_>,
) -> Result<()> {
    let written: Vec<WrittenRow> = step.written()?.into_iter().map(WrittenRow::from).collect();
    let frontier = step.frontier()?;
    let next = unique(frontier.tasks.iter().map(|task| task.node.as_str()));
    if step.kind == StepKind::Input {
        if let (Some(one), Some(root)) = (written.first(), builder.spans.first_mut())
            && let About::Workflow { question, labels, .. } = &mut root.about
        {
            *labels = Labels::of_request(&one.written.context);
            *question = one.written.request.clone();
        }
        return Ok(());
    }
    for (task, one) in written.iter().enumerate() {
        let task = u32::try_from(task).unwrap_or(u32::MAX);
        let to = match &one.goto {
            Some(targets) => targets_of(targets),
            None => or_end(next.clone()),
        };
        if step.kind != StepKind::Loop {
            builder.transition(step, task, &one.node, to, Reason::Edit);
            continue;
        }
        let work = Work {
            step: step.seq,
            task,
            node: &one.node,
            start,
            committed: Some(step.at),
            written: Some(one),
            to: &to,
            effects: of_task(&effects.own, step.seq, task),
            elsewhere: of_task(&effects.elsewhere, step.seq, task),
        };
        if work.draw(builder)? {
            builder.transition(step, task, &one.node, to, Reason::Edge);
        }
        if let (Some(text), Some(root)) = (&one.written.answer, builder.spans.first_mut())
            && let About::Workflow { answer, .. } = &mut root.about
        {
            *answer = Some(text.clone());
        }
    }
    Ok(())
}

/// Draws the nodes of the step that was under way when the trace's last run ended.
fn uncommitted(
    builder: &mut SpanBuilder<'_>,
    group: &Group<'_>,
    before: Option<&StepRow>,
    effects: &Effects<'_>,
) -> Result<()> {
    let Some(before) = before else { return Ok(()) };
    let step = group.last_step + 1;
    let tasks = before.frontier()?.tasks;
    let failed = group.last().status == RunStatus::Failed;
    for (index, task) in tasks.iter().enumerate() {
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let mine = of_task(&effects.own, step, number);
        let broke = failed && tasks.len() == 1;
        if mine.is_empty() && !broke && builder.subgraph(&task.node, step, number).is_none() {
            continue;
        }
        let first = builder.spans.len();
        let work = Work {
            step,
            task: number,
            node: &task.node,
            start: before.at.max(group.first().started_at),
            committed: None,
            written: None,
            to: &[],
            effects: mine,
            elsewhere: of_task(&effects.elsewhere, step, number),
        };
        work.draw(builder)?;
        let closed = builder.closed;
        let within = builder.within;
        for span in &mut builder.spans[first..] {
            // Finished calls stay what they are; the work around them may continue.
            let encloses = matches!(
                span.about,
                About::Agent { .. } | About::Stage { .. } | About::Transition { .. }
            );
            span.open |= !closed && encloses && span.within == within;
        }
        if let Some(span) = builder.spans.get_mut(first).filter(|_| broke) {
            span.status = Status::Error { message: "the node failed, and the run with it".into() };
        }
    }
    Ok(())
}

/// Extends the root to the end of its content, and sums up the usage.
fn finish(builder: &mut SpanBuilder<'_>, group: &Group<'_>) {
    let end = builder.spans.iter().map(|span| span.end).max();
    let usage = spent(&builder.spans);
    let tools = tool_counts(&builder.spans);
    let ended = group.last().ended_at;
    let questions = builder.spans.iter().filter_map(|span| match &span.about {
        About::Question { question, .. } => question.as_deref(),
        _ => None,
    });
    let questions: Vec<&str> = questions.collect();
    let waits = group.last().status == RunStatus::Interrupted && !questions.is_empty();
    let waits_for = waits.then(|| questions.join("\n"));
    let Some(root) = builder.spans.first_mut() else { return };
    root.end = end.into_iter().chain(ended).max().unwrap_or(root.end).max(root.start);
    if let About::Workflow { usage: all, tools: called, asks, .. } = &mut root.about {
        (*all, *called, *asks) = (usage, tools, waits_for);
    }
}

fn of_task<'a>(effects: &[&'a EffectRow], step: u64, task: u32) -> Vec<&'a EffectRow> {
    let mut mine: Vec<&EffectRow> =
        effects.iter().copied().filter(|row| row.step == step && row.task == task).collect();
    mine.sort_by_key(|row| row.number);
    mine
}

fn targets_of(targets: &[Target]) -> Vec<String> {
    or_end(unique(targets.iter().filter_map(|target| match target {
        Target::Node(node) | Target::Send { node, .. } => Some(node.as_str()),
        Target::End => None,
    })))
}

fn or_end(nodes: Vec<String>) -> Vec<String> {
    if nodes.is_empty() { vec![END.to_owned()] } else { nodes }
}

fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for name in names {
        if !seen.iter().any(|known| known == name) {
            seen.push(name.to_owned());
        }
    }
    seen
}

#[cfg(test)]
#[path = "projection_tests.rs"]
mod tests;
