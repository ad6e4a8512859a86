//! The usage of runs and their executions, stored for the daily budgets of tenants and for the audit log.

use perihelion_people::{EndedRun, Taken};

use super::{Error, RunReport, Runtime};
use crate::graphs::Ended;
use perihelion_engine::checkpoint::{StepKind, StepRow};
use perihelion_engine::clock;
use perihelion_settings::config::TraceScope;
use perihelion_star::GraphState;
use perihelion_telemetry::{About, View, Which, bill, project, read};

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
