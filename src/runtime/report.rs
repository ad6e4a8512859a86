//! What a run hands to its caller: one object, the same on the command line and over HTTP.

use serde::Serialize;
use serde_json::Value;

use crate::graph::{EngineError, Interrupt};
use crate::ids::ThreadId;
use crate::llm::Usage;
use crate::runner::{RunOutcome, RunResult};
use crate::swarm::{AgentResult, Citation, GraphState};
use crate::telemetry::reading::Event;

/// How a run ended, in the contract's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatusView {
    Done,
    Interrupted,
    Failed,
    /// Left to the workers.
    Queued,
}

/// An open question as shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InterruptView {
    pub id: String,
    pub kind: String,
    pub agent: String,
    pub payload: Value,
}

impl From<&Interrupt> for InterruptView {
    fn from(interrupt: &Interrupt) -> Self {
        Self {
            id: interrupt.id.to_string(),
            kind: interrupt.kind.clone(),
            agent: interrupt.node.clone(),
            payload: interrupt.payload.clone(),
        }
    }
}

/// The result of `run` and `resume`.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    pub thread_id: String,
    pub run_id: String,
    pub status: RunStatusView,
    pub answer: Option<String>,
    pub results: Vec<AgentResult>,
    pub citations: Vec<Citation>,
    pub interrupts: Vec<InterruptView>,
    /// Tokens of the present turn, its crashed and interrupted runs included; each call counted once.
    pub usage: Usage,
    /// What the turn cost so far in US dollars, where prices are set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Super-steps of this run.
    pub steps: u64,
    /// Why the run failed or was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What happened in the run and those it went on with, in order; only where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Event>>,
}

impl RunReport {
    /// Reports on a run that has ended.
    pub(super) fn new(outcome: &RunOutcome<GraphState>) -> Self {
        let state = &outcome.state;
        let (status, interrupts, error) = match &outcome.result {
            RunResult::Done => (RunStatusView::Done, Vec::new(), None),
            RunResult::Interrupted(open) => {
                (RunStatusView::Interrupted, open.iter().map(InterruptView::from).collect(), None)
            }
            RunResult::Queued => (RunStatusView::Queued, Vec::new(), None),
            RunResult::Cancelled => (
                RunStatusView::Failed,
                Vec::new(),
                Some("the run was stopped; what it did is kept".to_owned()),
            ),
            RunResult::Failed(EngineError::Node { message, .. }) => {
                (RunStatusView::Failed, Vec::new(), Some(message.clone()))
            }
            RunResult::Failed(error) => {
                (RunStatusView::Failed, Vec::new(), Some(error.to_string()))
            }
        };
        let report = Self::of(outcome.thread, outcome.run.to_string(), status, state);
        Self { interrupts, steps: outcome.steps, error, ..report }
    }

    /// Reports what the state of a thread says of its present turn.
    pub(super) fn of(
        thread: ThreadId,
        run_id: String,
        status: RunStatusView,
        state: &GraphState,
    ) -> Self {
        Self {
            thread_id: thread.to_string(),
            run_id,
            status,
            answer: if status == RunStatusView::Done { state.answer.clone() } else { None },
            results: state.results_of_turn().cloned().collect(),
            citations: state
                .citations
                .iter()
                .filter(|one| one.turn == state.turn)
                .cloned()
                .collect(),
            interrupts: Vec::new(),
            usage: state.usage_of_turn(),
            cost_usd: Some(state.spent_in_turn().nano_usd)
                .filter(|cost| *cost > 0)
                .map(|cost| cost as f64 / 1e9),
            steps: 0,
            error: None,
            events: None,
        }
    }
}
