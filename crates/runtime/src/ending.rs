//! Why a run of the star ended, and whether it failed although an answer was written.

use perihelion_engine::graph::EngineError;
use perihelion_engine::runner::{RunResult, Verdict};
use perihelion_star::question::kind;
use perihelion_star::{AgentError, AgentResult, ErrorKind, FinishReason, GraphState, ResultStatus};

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

/// Returns whether the answer of the present turn is incomplete.
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
