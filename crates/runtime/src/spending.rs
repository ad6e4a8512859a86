//! What runs took and who worked in them, written down for the budgets of a tenant's day and for the audit.

use perihelion_people::{EndedRun, Taken};

use super::{RunReport, Runtime};
use perihelion_engine::clock;
use perihelion_engine::runner::RunOutcome;
use perihelion_star::GraphState;

impl Runtime {
    /// Writes down what a run took and who worked in it.
    pub(super) async fn note_ended(&self, outcome: &RunOutcome<GraphState>, report: &RunReport) {
        if self.spending.is_none() && self.audit.get().is_none() {
            return;
        }
        let thread = outcome.thread;
        match self.store().info(thread).await {
            Ok(info) => {
                self.note_taken(&info.tenant, outcome).await;
                self.note_executed(&info.tenant, thread, &report.results).await;
            }
            Err(error) => {
                tracing::error!(%error, %thread, "cannot record the usage and agents of a run");
            }
        }
    }

    /// Writes down what a run took; what cannot be written is said in the log and costs nobody anything.
    async fn note_taken(&self, tenant: &str, outcome: &RunOutcome<GraphState>) {
        let Some(people) = &self.spending else { return };
        let thread = outcome.thread;
        let tenant = tenant.to_owned();
        let now = clock::now();
        let state = &outcome.state;
        let run =
            EndedRun { tenant, thread: thread.0, turn: state.turn, run: outcome.run.0, at: now };
        let taken = taken(outcome, now.timestamp_micros());
        if let Err(error) = people.note_taken(&run, taken).await {
            tracing::error!(%error, %thread, "cannot record the usage of a run");
        }
    }
}

/// Returns what the turn has taken so far, and the time of the run alone.
fn taken(outcome: &RunOutcome<GraphState>, now_micros: i64) -> Taken {
    let state = &outcome.state;
    let spent = state.spent_in_turn();
    let micros = now_micros.saturating_sub(outcome.run.started_micros());
    Taken {
        tokens: spent.usage.total(),
        nano_usd: spent.nano_usd,
        tool_calls: state.tool_calls_of_turn(),
        steps: outcome.head.saturating_sub(state.routing.first_step) + spent.steps,
        millis: u64::try_from(micros / 1_000).unwrap_or(0),
    }
}
