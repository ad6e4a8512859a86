//! The statuses of tasks, from the rows of their runs and their results, never from the event log.

use super::refusal::Refusal;
use crate::questions;
use perihelion_engine::checkpoint::ThreadStatus;
use perihelion_engine::ids::ThreadId;
use perihelion_service::kept::{Run, RunStatus};
use perihelion_service::{ClientStatus, RunSummary, Service};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Submitted,
    Working,
    Completed,
    Failed,
    Canceled,
    InputRequired,
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Submitted => "TASK_STATE_SUBMITTED",
            Self::Working => "TASK_STATE_WORKING",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Canceled => "TASK_STATE_CANCELED",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        }
    }

    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
    }
}

/// A state, and the answer, the question, or why it failed.
pub(super) type WithText = (State, Option<String>);

/// Returns how a run left its task, and the last message.
pub(super) async fn of_run(service: &Service, run: &Run) -> Result<WithText, Refusal> {
    match by_row(run) {
        Some(state) => {
            let why = run.error.as_ref().filter(|_| state == State::Failed);
            let why = why.and_then(|why| why["message"].as_str());
            Ok((state, why.map(str::to_owned)))
        }
        None => Ok(by_what_it_left(&service.left_by(run).await?)),
    }
}

/// Returns how a run left its task, with as few reads as possible.
pub(super) async fn alone(service: &Service, run: &Run) -> Result<State, Refusal> {
    if let Some(state) = by_row(run) {
        return Ok(state);
    }
    let thread = ThreadId(run.thread);
    let is_done = match service.step_after(run).await? {
        Some(step) => service.is_done_at(thread, step).await?,
        None => {
            let info = service.info(thread).await?;
            // Otherwise the command line can have continued it since.
            info.status == ThreadStatus::Idle && info.updated_at <= run.updated_at
        }
    };
    if is_done {
        return Ok(State::Completed);
    }
    Ok(by_what_it_left(&service.left_by(run).await?).0)
}

fn by_row(run: &Run) -> Option<State> {
    match run.status {
        RunStatus::Pending => Some(State::Submitted),
        RunStatus::Running => Some(State::Working),
        RunStatus::Interrupted => Some(State::Canceled),
        RunStatus::Error | RunStatus::Timeout => Some(State::Failed),
        RunStatus::Success => (run.metadata["a2a"]["cancels"] == true).then_some(State::Canceled),
    }
}

/// Reads the status of a task whose newest run has succeeded: it was answered, or a question is open, and the command
/// line may have continued its thread.
fn by_what_it_left(left: &RunSummary) -> WithText {
    let answer = left.answer();
    let is_at_turn = left.now.filter(|_| !left.has_moved_on());
    match is_at_turn {
        Some(_) if !left.asked.is_empty() => {
            (State::InputRequired, Some(questions::in_words(&left.asked)))
        }
        _ if answer.is_some() => (State::Completed, answer),
        Some(ClientStatus::Idle) => (State::Completed, None),
        Some(ClientStatus::Busy) => (State::Working, None),
        Some(ClientStatus::Interrupted) => (State::InputRequired, None),
        Some(ClientStatus::Error) => (State::Failed, left.error.clone()),
        None if left.is_done && !left.has_moved_on() => (State::Completed, None),
        // Another turn began, and its questions were abandoned.
        None => (State::Canceled, None),
    }
}
