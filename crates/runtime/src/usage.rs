//! The usage of runs: stored as they end, for budgets and the audit log; added up over threads, by day, agent, model and
//! user.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;

use super::{Error, RunReport, Runtime};
use crate::graphs::Ended;
use perihelion_engine::checkpoint::{StepKind, StepRow, Store};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_people::{EndedRun, Taken};
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
    /// By the user of the thread.
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

impl Runtime {
    /// Stores the usage of a run, its executions and the words of its messages.
    pub(super) async fn note_ended(&self, ended: &Ended, report: &RunReport) {
        self.note_words(&ended.tenant, ended).await;
        self.note_taken(ended).await;
        self.note_executed(&ended.tenant, ended.thread, &report.results).await;
    }

    /// Stores the usage of a run; a failure is logged, and does not count against the budget.
    async fn note_taken(&self, ended: &Ended) {
        let Some(people) = &self.spending else { return };
        let thread = ended.thread;
        let tenant = ended.tenant.to_string();
        let at = clock::now();
        let micros = at.timestamp_micros().saturating_sub(ended.run.started_micros());
        let noted = async {
            let (turn, taken) = match &*ended.state {
                GraphState { turn: 0, .. } => self.taken_by_trace(ended).await?,
                star => (star.turn, taken_in_turn(star, ended.head)),
            };
            let taken = Taken { millis: u64::try_from(micros / 1_000).unwrap_or(0), ..taken };
            let run = EndedRun { tenant, thread: thread.0, turn, run: ended.run.0, at };
            Ok::<_, Error>(people.note_taken(&run, taken).await?)
        };
        if let Err(error) = noted.await {
            tracing::error!(%error, %thread, "cannot record the usage of a run");
        }
    }

    /// Returns what the trace of a run took so far, from its journal, under the number of its first run: only the state of
    /// the supervisor graph counts it.
    async fn taken_by_trace(&self, ended: &Ended) -> Result<(u32, Taken), Error> {
        let view = View { scope: TraceScope::Run, content: false, rounds: None };
        let which = Which::Run(ended.run);
        let (rows, number) = read(self.store().as_ref(), ended.thread, which).await?;
        // Without a step there is no trace, and no usage that counts.
        let mut spans = project(&rows, number, view).unwrap_or_default();
        bill(&mut spans, &self.settings().models.price_list());
        let Some(root) = spans.first() else { return Ok((number, Taken::default())) };
        let About::Workflow { runs, usage, tools, .. } = &root.about else {
            return Ok((number, Taken::default()));
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
        Ok((root.run, taken))
    }
}

/// Returns what the present turn of the supervisor graph took so far.
fn taken_in_turn(star: &GraphState, head: u64) -> Taken {
    let spent = star.spent_in_turn();
    Taken {
        tokens: spent.usage.total(),
        nano_usd: spent.nano_usd,
        tool_calls: star.tool_calls_of_turn(),
        steps: head.saturating_sub(star.routing.first_step) + spent.steps,
        millis: 0,
    }
}
