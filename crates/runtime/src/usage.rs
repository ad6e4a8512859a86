//! The usage of runs: stored as they end, for budgets and the audit log; added up over threads, by day, agent, model and
//! user.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;

use super::{Error, RunReport, Runtime};
use crate::ThreadState;
use crate::graphs::Ended;
use perihelion_engine::checkpoint::{StepKind, StepRow, Store};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_people::{EndedRun, People, Taken};
use perihelion_settings::config::{Settings, TraceScope};
use perihelion_star::GraphState;
use perihelion_telemetry::{About, Spent, View, Which, bill, project, read, spans_of};

#[derive(Clone, Debug, Default, Serialize)]
pub struct Usage {
    /// By the day (UTC) on which a call began.
    pub by_day: BTreeMap<NaiveDate, Spent>,
    pub parts_by_day: BTreeMap<NaiveDate, Parts>,
    #[serde(flatten)]
    pub parts: Parts,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Parts {
    /// By agent, or by role for calls without one.
    pub by_agent: BTreeMap<String, Spent>,
    pub by_model: BTreeMap<String, Spent>,
    pub by_user: BTreeMap<String, Spent>,
}

impl Usage {
    fn add(&mut self, start: DateTime<Utc>, about: &About, user: Option<&str>, spent: Spent) {
        let About::Chat { role, agent, model, .. } = about else { return };
        let worker = agent.as_ref().unwrap_or(role);
        let model = model.as_deref().unwrap_or("no answer");
        let user = user.unwrap_or("no user");
        let day = start.date_naive();
        self.by_day.entry(day).or_default().add(spent);
        for parts in [&mut self.parts, self.parts_by_day.entry(day).or_default()] {
            parts.by_agent.entry(worker.clone()).or_default().add(spent);
            parts.by_model.entry(model.to_owned()).or_default().add(spent);
            parts.by_user.entry(user.to_owned()).or_default().add(spent);
        }
    }
}

/// Adds up the usage of model calls since a time, of threads with their users; it reads the journals.
///
/// # Errors
/// Any error of the store for the threads' runs. A run whose steps cannot be read counts as zero.
pub async fn usage(
    store: &dyn Store,
    settings: &Settings,
    threads: &[(ThreadId, Option<String>)],
    since: DateTime<Utc>,
) -> Result<Usage, Error> {
    let prices = settings.models.price_list();
    let view = View::default();
    let mut usage = Usage::default();
    for (thread, user) in threads {
        // The first run of the trace that was read last: the runs that continued with it are in it.
        let mut read_from = u32::MAX;
        for run in store.runs(*thread).await?.iter().rev() {
            if run.ended_at.is_some_and(|end| end < since) {
                break;
            }
            if run.number >= read_from {
                continue;
            }
            let Ok(mut spans) = spans_of(store, *thread, run.number, view).await else { continue };
            read_from = spans.first().map_or(run.number, |root| root.run);
            bill(&mut spans, &prices);
            for span in spans.iter().filter(|span| span.start >= since) {
                if let (About::Chat { .. }, Some(spent)) = (&span.about, span.spent) {
                    usage.add(span.start, &span.about, user.as_deref(), spent);
                }
            }
        }
    }
    Ok(usage)
}

/// The part of a turn that the newest run of a thread belongs to: since the turn began, or since the thread returned into
/// it or was copied in it. What was done before the return was done in another part, and counts as well.
struct Part {
    /// The step with which it began.
    pub since: u64,
    /// The state at that step; `None` at the beginning of the turn.
    pub before: Option<ThreadState>,
}

impl Runtime {
    pub(super) async fn note_ended(&self, ended: &Ended, report: &RunReport) {
        let part = self.part_of(ended).await.unwrap_or_else(|error| {
            tracing::error!(%error, thread = %ended.thread, "cannot read since when a run worked; counting its whole turn");
            Part { since: ended.state.routing.first_step, before: None }
        });
        if let Err(error) = self.note_taken(ended, &part).await {
            tracing::error!(%error, thread = %ended.thread, "cannot record the usage of a run");
        }
        let results = report.results.get(part.results_before()..).unwrap_or_default();
        self.note_executed(ended, part.since, results).await;
    }

    async fn part_of(&self, ended: &Ended) -> Result<Part, Error> {
        let first = ended.state.routing.first_step;
        // The steps of one run follow each other.
        let base = ended.head.saturating_sub(ended.steps);
        if base < first || ended.state.turn == 0 {
            return Ok(Part { since: first, before: None });
        }
        let store = self.store();
        let count = u32::try_from(base - first).unwrap_or(u32::MAX);
        let steps = store.history(ended.thread, Some(base + 1), count).await?;
        let returned = steps.iter().find(|step| step.kind == StepKind::Fork).map(|step| step.seq);
        let copied = store.info(ended.thread).await?.forked_from.map(|(_, shared)| shared);
        let Some(since) = returned.max(copied).filter(|since| *since >= first) else {
            return Ok(Part { since: first, before: None });
        };
        let graph = self.graph_of(ended.thread).await?;
        Ok(Part { since, before: Some(graph.state(ended.thread, Some(since)).await?) })
    }

    /// Stores the usage of a run and the words of its messages in one statement.
    async fn note_taken(&self, ended: &Ended, part: &Part) -> Result<(), Error> {
        let Some(database) = &self.database else { return Ok(()) };
        let at = clock::now();
        let micros = at.timestamp_micros().saturating_sub(ended.run.started_micros());
        let (number, taken) = match &*ended.state {
            GraphState { turn: 0, .. } => self.taken_by_trace(ended).await?,
            star => (part.since, part.taken(star, ended.head)),
        };
        let taken = Taken { millis: u64::try_from(micros / 1_000).unwrap_or(0), ..taken };
        let tenant = ended.tenant.to_string();
        let run = EndedRun { tenant, thread: ended.thread.0, part: number, run: ended.run.0, at };
        let usage = People::noting(&run, taken);
        let database = database.of_tenant(&run.tenant);
        let both = async {
            let Some(words) = self.noting_words(ended).await? else { return Ok(false) };
            database.execute(&words.and(usage.clone(), database.dialect())).await?;
            Ok::<_, Error>(true)
        };
        match both.await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            // The thread may have just been deleted; the usage of the run still counts.
            Err(error) => {
                tracing::error!(%error, thread = %ended.thread, "cannot store the words of a conversation");
            }
        }
        database.execute(&usage).await?;
        Ok(())
    }

    /// Returns what the trace of a run took so far, from its journal, under the number of its first run: only the state of
    /// the supervisor graph counts it.
    async fn taken_by_trace(&self, ended: &Ended) -> Result<(u64, Taken), Error> {
        let view = View { scope: TraceScope::Run, content: false, rounds: None };
        let which = Which::Run(ended.run);
        let (rows, number) = read(self.store().as_ref(), ended.thread, which).await?;
        // Without a step there is no trace, and no usage that counts.
        let mut spans = project(&rows, number, view).unwrap_or_default();
        bill(&mut spans, &self.settings().models.price_list());
        let Some(root) = spans.first() else { return Ok((number.into(), Taken::default())) };
        let About::Workflow { runs, usage, tools, .. } = &root.about else {
            return Ok((number.into(), Taken::default()));
        };
        let ids: Vec<_> = rows
            .runs
            .iter()
            .filter(|row| runs.iter().any(|run| run.number == row.number))
            .map(|row| row.id)
            .collect();
        let is_of_it = |step: &&StepRow| step.kind == StepKind::Loop && ids.contains(&step.run);
        let taken = Taken {
            tokens: usage.total(),
            nano_usd: root.spent.and_then(|spent| spent.nano_usd).unwrap_or_default(),
            tool_calls: tools.iter().map(|tool| u64::from(tool.calls)).sum(),
            steps: rows.steps.iter().filter(is_of_it).count() as u64,
            millis: 0,
        };
        Ok((root.run.into(), taken))
    }
}

impl Part {
    fn taken(&self, star: &GraphState, head: u64) -> Taken {
        let now = taken_in_turn(star);
        let before = self.before.as_ref().map(|before| taken_in_turn(before.star()));
        let before = before.unwrap_or_default();
        let steps = now.steps.saturating_sub(before.steps);
        Taken {
            tokens: now.tokens.saturating_sub(before.tokens),
            nano_usd: now.nano_usd.saturating_sub(before.nano_usd),
            tool_calls: now.tool_calls.saturating_sub(before.tool_calls),
            steps: head.saturating_sub(self.since) + steps,
            millis: 0,
        }
    }

    /// Returns how many results the present turn had when the part began.
    fn results_before(&self) -> usize {
        self.before.as_ref().map_or(0, |before| before.star().results_of_turn().count())
    }
}

/// Returns what the present turn of the supervisor graph took so far; of the steps, those of teams.
fn taken_in_turn(star: &GraphState) -> Taken {
    let spent = star.spent_in_turn();
    Taken {
        tokens: spent.usage.total(),
        nano_usd: spent.nano_usd,
        tool_calls: star.tool_calls_of_turn(),
        steps: spent.steps,
        millis: 0,
    }
}
