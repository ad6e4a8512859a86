//! What a stage hands back: where to go next, or why it could not.

use crate::model::stop_or_failure;
use crate::{AgentError, ErrorKind, Finding};
use perihelion_engine::graph::{NodeError, State};
use perihelion_llm as llm;

/// Where a pipeline goes after a stage, with what the stage writes.
#[derive(Clone, Debug)]
pub struct Step<W: State> {
    pub(super) update: W::Update,
    pub(super) to: To,
}

/// Where to.
#[derive(Clone, Debug)]
pub(super) enum To {
    Next,
    Stage(String),
    Done(Box<Finding>),
}

impl<W: State> Step<W> {
    /// Continues to the next stage of the list.
    pub fn next(update: W::Update) -> Self {
        Self { update, to: To::Next }
    }

    /// Goes to a stage by name, an earlier one also.
    pub fn goto(stage: impl Into<String>, update: W::Update) -> Self {
        Self { update, to: To::Stage(stage.into()) }
    }

    /// Ends with a finding, which reflection judges.
    pub fn done(finding: Finding) -> Self {
        Self::done_with(W::Update::default(), finding)
    }

    /// The same, with something written.
    pub fn done_with(update: W::Update, finding: Finding) -> Self {
        Self { update, to: To::Done(Box::new(finding)) }
    }

    /// Hands the task back as one for another agent.
    ///
    /// # Errors
    /// Always: a stage returns it as it is.
    pub fn decline(reason: impl Into<String>) -> StageResult<W> {
        Err(AgentError::new(ErrorKind::PlanningDeclined, reason).into())
    }
}

/// Why a stage did not end well.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// A person must answer first, or the run stops; nothing is written.
    #[error(transparent)]
    Stop(#[from] NodeError),
    /// The agent failed; the run continues without it.
    #[error(transparent)]
    Failed(#[from] AgentError),
}

impl From<llm::Error> for StageError {
    fn from(error: llm::Error) -> Self {
        match stop_or_failure(error) {
            Ok(error) => Self::Failed(error.into()),
            Err(stop) => Self::Stop(stop),
        }
    }
}

/// What a stage returns.
pub type StageResult<W> = Result<Step<W>, StageError>;
