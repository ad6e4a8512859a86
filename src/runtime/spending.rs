//! What runs took, written down for the budgets of a tenant's day.

use perihelion_people::{EndedRun, Taken};

use super::Runtime;
use crate::clock;
use crate::runner::RunOutcome;
use crate::swarm::GraphState;

impl Runtime {
    /// Writes down what a run took; what cannot be written is said in the log and costs nobody anything.
    pub(super) async fn note_taken(&self, outcome: &RunOutcome<GraphState>) {
        let Some(people) = &self.spending else { return };
        let thread = outcome.thread;
        let tenant = match self.store().info(thread).await {
            Ok(info) => info.tenant,
            Err(error) => {
                return tracing::error!(%error, %thread, "what a run took is not counted");
            }
        };
        let (now, state) = (clock::now(), &outcome.state);
        let run =
            EndedRun { tenant, thread: thread.0, turn: state.turn, run: outcome.run.0, at: now };
        let taken = taken(outcome, now.timestamp_micros());
        if let Err(error) = people.note_taken(&run, taken).await {
            tracing::error!(%error, %thread, "what a run took is not counted");
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
