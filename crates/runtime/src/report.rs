//! The result of a run for its caller: one object, the same on the command line and over HTTP.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::ThreadState;
use perihelion_engine::checkpoint::{self, Store};
use perihelion_engine::graph::{EngineError, Interrupt};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{RunOutcome, RunResult, Verdict};
use perihelion_llm::Usage;
use perihelion_star::question::{Question, kind};
use perihelion_star::{
    AgentError, AgentResult, Citation, ErrorKind, FinishReason, GraphState, Planner, ResultStatus,
    Table, question,
};
use perihelion_telemetry::reading::Event;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatusView {
    Done,
    Interrupted,
    Failed,
    /// Stopped before its end; it can continue.
    Stopped,
    /// Left to the workers.
    Queued,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InterruptView {
    pub id: String,
    pub kind: String,
    pub agent: String,
    pub payload: Value,
}

impl InterruptView {
    pub fn question(&self) -> Question {
        Question::read(&self.kind, &self.payload)
    }

    /// Returns whether it is the one of this ID, in capital letters or small ones.
    pub fn is(&self, id: &str) -> bool {
        self.id.eq_ignore_ascii_case(id)
    }

    /// Returns whether the kind has a form of questions and answers; other kinds belong to a program's own graph.
    pub fn has_known_kind(&self) -> bool {
        let known = [kind::APPROVAL, kind::CLARIFICATION, kind::ELICITATION, kind::OUTCOME_UNKNOWN];
        known.contains(&self.kind.as_str())
    }
}

impl From<&Interrupt> for InterruptView {
    fn from(interrupt: &Interrupt) -> Self {
        Self {
            id: interrupt.id.to_string(),
            kind: interrupt.kind.clone(),
            agent: question::asked_by(interrupt),
            payload: interrupt.payload.clone(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Metadata {
    pub turn: u32,
    pub context: BTreeMap<String, String>,
    /// Whether the answer leaves something out: an agent failed, the turn ended early, or no model could write it.
    pub partial: bool,
    /// Citations of results and answer without a source, which were removed.
    pub citations_removed: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    pub thread_id: String,
    pub run_id: String,
    pub status: RunStatusView,
    pub answer: Option<String>,
    /// The answer as JSON, if there is a schema for it and it is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// The first table that an agent found; whole, unless the agent itself cut it.
    pub data: Option<Table>,
    #[serde(serialize_with = "whole_results")]
    pub results: Vec<AgentResult>,
    pub citations: Vec<Citation>,
    /// How the turn was planned; null before the first decision.
    pub planner: Option<Planner>,
    pub interrupts: Vec<InterruptView>,
    /// Why the run ended; absent while it waits for something else than the user's word.
    pub finish_reason: Option<FinishReason>,
    /// Tokens of the present turn, its crashed and interrupted runs included; each call counted once.
    pub usage: Usage,
    /// The cost of the turn so far in US dollars, if prices are set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    pub steps: u64,
    /// The limits of an answer: the run ended early, or tasks failed.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// Why the run failed or was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The kind of error of the node that failed: of a hosted graph, the class of its exception.
    #[serde(skip)]
    pub error_kind: Option<String>,
    /// The state of the supervisor graph after a run that was driven here.
    #[serde(skip)]
    pub state: Option<ThreadState>,
    /// Number of the turn, and the context of its request.
    pub metadata: Metadata,
    /// The events of the run and of those it continued with, in order; only on request.
    #[serde(rename = "trace", skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Event>>,
}

/// Reads the answer if JSON was requested; `None` for an answer that was composed without the model.
fn structured(state: &GraphState) -> Option<Value> {
    let schema = state.preferences.answer_schema.as_ref()?;
    perihelion_llm::structured::read_valid(schema, state.answer.as_deref()?)
}

impl RunReport {
    pub(super) fn new(outcome: &RunOutcome<GraphState>) -> Self {
        let state = &outcome.state;
        let mut interrupts = Vec::new();
        let (status, error) = match &outcome.result {
            RunResult::Done => match failure(state) {
                None => (RunStatusView::Done, None),
                failure => (RunStatusView::Failed, failure),
            },
            RunResult::Interrupted(open) => {
                interrupts.extend(open.iter().map(InterruptView::from));
                (RunStatusView::Interrupted, None)
            }
            RunResult::Queued => (RunStatusView::Queued, None),
            RunResult::Cancelled => {
                let why = "the run was stopped; completed steps are saved";
                (RunStatusView::Stopped, Some(why.to_owned()))
            }
            RunResult::Failed(EngineError::Node { message, .. }) => {
                (RunStatusView::Failed, Some(message.clone()))
            }
            RunResult::Failed(error) => (RunStatusView::Failed, Some(error.to_string())),
        };
        let report = Self::of(outcome.thread, outcome.run.to_string(), status, state);
        let error_kind = match &outcome.result {
            RunResult::Failed(EngineError::Node { kind, .. }) => Some(kind.clone()),
            _ => None,
        };
        // The state of a program's own graph has no turns, and nothing that the reason could be read from.
        let is_own = outcome.result == RunResult::Done && state.turn == 0;
        let finish_reason = finish_reason(&outcome.result, state).filter(|_| !is_own);
        let answer = state.answer.clone().filter(|_| outcome.result == RunResult::Done);
        let steps = outcome.steps;
        Self { answer, interrupts, finish_reason, steps, error, error_kind, ..report }
    }

    pub(super) fn of(
        thread: ThreadId,
        run_id: String,
        status: RunStatusView,
        state: &GraphState,
    ) -> Self {
        let cited = state.citations.iter().filter(|one| one.turn == state.turn);
        let cost = state.spent_in_turn().nano_usd;
        Self {
            thread_id: thread.to_string(),
            run_id,
            status,
            answer: state.answer.clone().filter(|_| status == RunStatusView::Done),
            structured: structured(state),
            results: state.results_of_turn().cloned().collect(),
            citations: cited.cloned().collect(),
            data: None,
            planner: state.planner.clone().filter(|planner| planner.turn == state.turn),
            metadata: Metadata {
                turn: state.turn,
                context: state.request_context.clone(),
                partial: is_partial(state),
                citations_removed: state.citations_removed_of_turn(),
            },
            interrupts: Vec::new(),
            finish_reason: (status == RunStatusView::Done).then(|| reason_of_end(state)),
            warnings: warnings(state),
            usage: state.usage_of_turn(),
            cost_usd: (cost > 0).then_some(cost as f64 / 1e9),
            steps: 0,
            error: None,
            error_kind: None,
            state: None,
            events: None,
        }
    }
}

/// Writes results with every key of their shape, including those that the state leaves out.
fn whole_results<S: Serializer>(results: &[AgentResult], to: S) -> Result<S::Ok, S::Error> {
    let whole = |result: &AgentResult| {
        let mut shown = json!(result);
        for key in ["tabular", "chart", "confidence", "error"] {
            shown[key] = shown[key].take();
        }
        shown["sources"] = json!(result.sources);
        shown["latency_ms"] = json!(result.latency_ms);
        shown
    };
    to.collect_seq(results.iter().map(whole))
}

/// Returns the first table that an agent found in the turn, with the rows that an artifact holds.
pub(super) async fn data_of(
    store: &dyn Store,
    thread: ThreadId,
    state: &GraphState,
) -> Result<Option<Table>, checkpoint::Error> {
    let good = |result: &&AgentResult| result.status == ResultStatus::Success;
    let mut found = state.results_of_turn().filter(good);
    let Some(mut table) = found.find_map(|one| one.tabular.clone()) else { return Ok(None) };
    let Some(key) = table.artifact.take() else { return Ok(Some(table)) };
    if let Some(artifact) = state.global_state.get(&key) {
        let whole = artifact.whole(store, thread, &key).await?;
        let whole: Option<Value> = serde_json::from_str(&whole).ok();
        if let Some(whole) = whole.as_ref().and_then(Table::read) {
            table.rows = whole.rows;
        }
    }
    Ok(Some(table))
}

pub(super) fn judge(result: &RunResult, state: &GraphState) -> Verdict {
    let failure = match result {
        RunResult::Done => failure(state),
        _ => None,
    };
    let reason = finish_reason(result, state).map(FinishReason::as_str);
    Verdict { failure, finish_reason: reason }
}

/// Returns why a run ended; `None` if it is active, or waits for something other than the user's answer.
pub(super) fn finish_reason(result: &RunResult, state: &GraphState) -> Option<FinishReason> {
    match result {
        RunResult::Done => Some(reason_of_end(state)),
        RunResult::Interrupted(open) => open
            .iter()
            .any(|one| one.kind == kind::CLARIFICATION)
            .then_some(FinishReason::Clarification),
        RunResult::Cancelled => Some(FinishReason::Cancelled),
        RunResult::Queued => None,
        RunResult::Failed(error) => match error {
            EngineError::Node { kind, .. } if kind == "model" => Some(FinishReason::ModelFailed),
            EngineError::StepLimit(_) | EngineError::Deadline => Some(FinishReason::Limit),
            EngineError::Missing { .. } => Some(FinishReason::NoAgents),
            EngineError::Node { .. }
            | EngineError::UnknownTarget { .. }
            | EngineError::Encode { .. } => None,
        },
    }
}

/// Returns why the present turn ended, which it has.
pub(super) fn reason_of_end(state: &GraphState) -> FinishReason {
    match &state.finish_reason {
        Some(early) => early.reason,
        None if failure(state).is_some() => {
            let is = |kind: ErrorKind| {
                failed(state).all(|one| one.error.as_ref().is_some_and(|error| error.kind == kind))
            };
            let is_cut =
                |one: &AgentResult| one.error.as_ref().is_some_and(AgentError::is_truncation);
            if failed(state).all(is_cut) {
                FinishReason::Truncated
            } else if is(ErrorKind::Model) {
                FinishReason::ModelFailed
            } else if is(ErrorKind::Budget) {
                FinishReason::Limit
            } else {
                FinishReason::NoProgress
            }
        }
        None => FinishReason::Answered,
    }
}

/// Explains why the present turn failed, if none of its tasks succeeded.
///
/// A turn without tasks is answered from known facts, which is a failure only if the turn was cut short.
pub(super) fn failure(state: &GraphState) -> Option<String> {
    if state.results_of_turn().any(|result| result.status == ResultStatus::Success) {
        return None;
    }
    let error = failed(state).last().map(described);
    match &state.finish_reason {
        // The supervisor itself chose to answer without agents.
        Some(early) if early.reason == FinishReason::NoAgents && state.errors.is_empty() => None,
        Some(early) => Some(match error {
            Some(error) => format!("no task succeeded: {}; last: {error}", early.text),
            None => format!("no task succeeded: {}", early.text),
        }),
        None => error.map(|error| format!("no task succeeded: {error}")),
    }
}

/// Describes an incomplete success: the run ended early, or tasks failed.
pub(super) fn warnings(state: &GraphState) -> Vec<String> {
    let early = state.finish_reason.iter();
    let early =
        early.map(|end| format!("the run ended early ({}): {}", end.reason.as_str(), end.text));
    let failed = failed(state).map(|result| format!("a task failed: {}", described(result)));
    early.chain(failed).collect()
}

pub(super) fn is_partial(state: &GraphState) -> bool {
    state.answer.is_some() && (state.finish_reason.is_some() || has_gap(state))
}

/// Returns whether a task failed and was not done later.
fn has_gap(state: &GraphState) -> bool {
    // Ids begin with turn and round.
    let round = |one: &AgentResult| one.id.split('.').nth(1).and_then(|it| it.parse::<u32>().ok());
    let done_later = |lost: &AgentResult| {
        state.results_of_turn().any(|one| {
            let is_same = one.task.trim() == lost.task.trim();
            is_same && one.status == ResultStatus::Success && round(one) > round(lost)
        })
    };
    failed(state).any(|lost| !lost.not_mine && !done_later(lost))
}

fn failed(state: &GraphState) -> impl Iterator<Item = &AgentResult> {
    state.results_of_turn().filter(|result| result.status == ResultStatus::Failed)
}

fn described(result: &AgentResult) -> String {
    format!("{}: {}", result.agent, result.error_message().unwrap_or("no reason was given"))
}
