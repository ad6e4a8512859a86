//! What a run is given, and how it can end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::bus::Bus;
use crate::checkpoint::{self, RunStatus, ThreadStatus};
use crate::graph::{EngineError, Interrupt, Limits, Pauses, RunEvent, State, Wants};
use crate::ids::{InterruptId, RunId, ThreadId};
use crate::journal::NoVerdict;

/// When a step counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It is committed before the next step starts.
    #[default]
    Sync,
    /// Its commit overlaps the next step; a crash loses at most that one step.
    Async,
    /// Steps are committed when the run ends; a crash loses them, but neither the input nor recorded effects.
    Exit,
}

/// How a run is to be driven; the default is durable, unheard and bounded by [`Limits`] alone.
#[derive(Clone, Debug)]
pub struct RunOptions<S: State> {
    /// When a step counts as done.
    pub durability: Durability,
    /// Bounds on steps and parallel tasks.
    pub limits: Limits,
    /// Wall-clock bound on the run; what runs then is stopped as by `cancel`, and a resume has it again.
    pub deadline: Option<Duration>,
    /// Which events are made.
    pub wants: Wants,
    /// Where events go; bounded, so that a slow listener slows the run instead of filling memory.
    pub events: Option<mpsc::Sender<RunEvent<S>>>,
    /// Where the run is told to other processes; nowhere by default, which costs nothing.
    pub publish: Option<Arc<dyn Bus>>,
    /// Nodes before and after which the run pauses: it ends as interrupted without a question, and a resume continues it.
    pub pauses: Pauses,
    /// Stops the run at the next chance: running tool calls finish, nothing new starts.
    pub cancel: CancellationToken,
    /// Leaves a run that is stopped to the workers, in place of the one who resumes it.
    pub hands_over: bool,
    /// Stops the run as `cancel` does, and for good: it is not handed over.
    pub withdrawn: CancellationToken,
    /// Fails a thread taken over from a dead process when so many runs before died as well and committed nothing.
    pub max_crashes: Option<u32>,
}

impl<S: State> Default for RunOptions<S> {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            limits: Limits::default(),
            deadline: None,
            wants: Wants::default(),
            events: None,
            publish: None,
            pauses: Pauses::default(),
            cancel: CancellationToken::new(),
            hands_over: false,
            withdrawn: CancellationToken::new(),
            max_crashes: None,
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum RunResult {
    /// It reached the end of the graph.
    Done,
    /// It waits for answers to these; none: it paused where it was to, and a resume continues it.
    Interrupted(Vec<Interrupt>),
    /// It was stopped as asked and can be resumed.
    Cancelled,
    /// It was stopped as asked and is left to the workers.
    Queued,
    /// It cannot continue; a resume tries the failed step again.
    Failed(EngineError),
}

/// What a graph's own judgement says of a run that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why the run failed, although it reached the end of the graph.
    pub failure: Option<String>,
    /// Why it ended, in a word that is kept with the run.
    pub finish_reason: Option<&'static str>,
}

/// Judges a run by its result and the state that it leaves.
pub type Judge<S> = fn(&RunResult, &S) -> Verdict;

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct RunOutcome<S: State> {
    pub thread: ThreadId,
    pub run: RunId,
    pub result: RunResult,
    /// The state as of the newest completed step.
    pub state: Arc<S>,
    /// Number of the newest completed step of the thread.
    pub head: u64,
    /// Super-steps completed in this run.
    pub steps: u64,
}

/// The stored reason why a run that was stopped did not finish.
pub const STOPPED: &str = "the run was stopped; resume it to continue";

/// Why a run could not be started or was broken off.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] checkpoint::Error),
    /// A new input for a thread whose last run has not ended.
    #[error(
        "the thread {thread} has an unfinished run ({status}); resume it first: perihelion resume {thread}"
    )]
    Unfinished { thread: ThreadId, status: &'static str },
    /// Nothing to resume.
    #[error(
        "the thread {thread} is finished, there is nothing to resume; ask on with: perihelion run --thread {thread} QUESTION"
    )]
    Finished { thread: ThreadId },
    /// The process that took the thread for a question ended before the question was stored.
    #[error(
        "the last question to the thread {thread} was never stored because its process ended; \
         ask again: perihelion run --thread {thread} QUESTION"
    )]
    NeverAsked { thread: ThreadId },
    /// Every process that resumes the thread dies.
    #[error(
        "the last {crashes} runs of the thread {thread} crashed without a commit, so workers skip it. \
         See its next node with `perihelion trace {thread}`, fix the cause, then run `perihelion resume {thread}`"
    )]
    CrashLoop { thread: ThreadId, crashes: u32 },
    /// The thread belongs to another graph.
    #[error("the thread {thread} belongs to the graph {found}, not to {wanted}")]
    WrongGraph { thread: ThreadId, found: String, wanted: String },
    #[error("the update cannot be merged: {0}")]
    Update(#[from] EngineError),
    /// An input or an edit after which the state would be too large; nothing was written.
    #[error(
        "the state of the thread {thread} would have {bytes} bytes, the limit is {most}. \
         Continue in another thread, or raise limits.max_state_bytes"
    )]
    StateFull { thread: ThreadId, bytes: usize, most: usize },
    /// An edit in the name of a node that does not exist.
    #[error("the graph {graph} has no node of that name: {node}")]
    UnknownNode { graph: String, node: String },
    /// An answer that its question cannot take; the question stays open.
    #[error("the interrupt {interrupt} stays open: {reason}")]
    Answer { interrupt: InterruptId, reason: NoVerdict },
}

impl RunResult {
    /// Returns what is stored of the run, of its thread, and why it did not end well.
    pub(super) fn statuses(&self) -> (RunStatus, ThreadStatus, Option<String>) {
        match self {
            Self::Done => (RunStatus::Done, ThreadStatus::Idle, None),
            Self::Interrupted(_) => (RunStatus::Interrupted, ThreadStatus::Interrupted, None),
            Self::Queued => (RunStatus::Queued, ThreadStatus::Queued, None),
            Self::Cancelled => (RunStatus::Cancelled, ThreadStatus::Failed, Some(STOPPED.into())),
            Self::Failed(error @ EngineError::Missing { .. }) => {
                (RunStatus::Failed, ThreadStatus::Parked, Some(error.to_string()))
            }
            Self::Failed(error) => {
                (RunStatus::Failed, ThreadStatus::Failed, Some(error.to_string()))
            }
        }
    }
}
