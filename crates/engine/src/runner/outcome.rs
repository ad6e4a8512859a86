//! The options of a run, and the ways in which it ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::bus::Bus;
use crate::checkpoint::{self, RunStatus, ThreadStatus};
use crate::graph::{EngineError, Interrupt, Limits, Pauses, Request, RunEvent, State, Wants};
use crate::ids::{InterruptId, RunId, ThreadId};
use crate::journal::NoVerdict;

/// When a step counts as done, and the next one can start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It is committed before the next step starts.
    #[default]
    Sync,
    /// Its commit overlaps the next step; a crash loses at most that one step.
    Async,
    /// Steps are committed when the run ends; a crash loses them, but it keeps the input and recorded effects.
    Exit,
}

/// How a run is driven; the default is durable, without listeners, and bounded by [`Limits`] alone.
#[derive(Clone, Debug, Default)]
pub struct RunOptions<S: State> {
    /// When a step counts as done.
    pub durability: Durability,
    /// Bounds on steps and parallel tasks.
    pub limits: Limits,
    /// Longest duration of the run, by wall clock. Then it is stopped as by `cancel`; a resume has the full duration again.
    pub deadline: Option<Duration>,
    /// The events that are made; the rest costs no time.
    pub wants: Wants,
    /// The receiver of the events. The channel is bounded, so a slow reader slows the run instead of filling memory.
    pub events: Option<mpsc::Sender<RunEvent<S>>>,
    /// The log that makes the events available to other processes; not written by default.
    pub publish: Option<Arc<dyn Bus>>,
    /// Nodes before and after which the run pauses: it ends as interrupted without a question, and a resume continues it.
    pub pauses: Pauses,
    /// Stops the run: active tool calls finish, and no other work starts.
    pub cancel: CancellationToken,
    /// Leaves a stopped run to the workers instead of a later [`Runner::resume`](super::Runner::resume).
    pub hands_over: bool,
    /// Stops the run as `cancel` does, and never leaves it to the workers.
    pub withdrawn: CancellationToken,
    /// Fails a thread after this number of runs in a row whose process died before a commit; no bound by default.
    pub max_crashes: Option<u32>,
    /// A value that the caller passes to the nodes of the run; not recorded.
    pub request: Option<Request>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum RunResult {
    /// It reached the end of the graph.
    Done,
    /// It waits for answers to these questions. Without questions, it paused as [`RunOptions::pauses`] requested.
    Interrupted(Vec<Interrupt>),
    /// It was stopped and can be resumed.
    Cancelled,
    /// It was stopped, and a worker continues it.
    Queued,
    /// It cannot continue; a resume tries the failed step again.
    Failed(EngineError),
}

/// The judgement of a graph on a run that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why the run failed, although it reached the end of the graph.
    pub failure: Option<String>,
    /// Why it ended, in a word that is stored with the run.
    pub finish_reason: Option<&'static str>,
}

/// Judges a run by its result and its last state.
pub type Judge<S> = fn(&RunResult, &S) -> Verdict;

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct RunOutcome<S: State> {
    /// The thread.
    pub thread: ThreadId,
    /// The tenant of the thread.
    pub tenant: Arc<str>,
    /// The run.
    pub run: RunId,
    /// How it ended.
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
#[expect(missing_docs, reason = "the message of each variant names its fields")]
pub enum Error {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] checkpoint::Error),
    /// A new input for a thread whose last run has not ended.
    #[error(
        "the thread {thread} has an unfinished run ({status}); resume it first: perihelion resume {thread}"
    )]
    Unfinished { thread: ThreadId, status: &'static str },
    /// The thread has no unfinished run.
    #[error(
        "the thread {thread} is finished; to ask another question, run: perihelion run --thread {thread} QUESTION"
    )]
    Finished { thread: ThreadId },
    /// The process of the last run ended before its input was stored.
    #[error(
        "the last question to the thread {thread} was never stored because its process ended; \
         ask again: perihelion run --thread {thread} QUESTION"
    )]
    NeverAsked { thread: ThreadId },
    /// As many runs in a row as [`RunOptions::max_crashes`] permits ended with the death of their process.
    #[error(
        "the last {crashes} runs of the thread {thread} crashed without a commit, so workers skip it. \
         See its next node with `perihelion trace {thread}`, fix the cause, then run `perihelion resume {thread}`"
    )]
    CrashLoop { thread: ThreadId, crashes: u32 },
    /// The thread belongs to another graph.
    #[error("the thread {thread} belongs to the graph {found}, not to {wanted}")]
    WrongGraph { thread: ThreadId, found: String, wanted: String },
    /// The update has no JSON form, or leads to an unknown node.
    #[error("the update cannot be merged: {0}")]
    Update(#[from] EngineError),
    /// The state would be too large after this input or edit; the store was not changed. Sizes are bytes of JSON.
    #[error(
        "the state of the thread {thread} would have {bytes} bytes, the limit is {most}. \
         Continue in another thread, or raise limits.max_state_bytes"
    )]
    StateFull { thread: ThreadId, bytes: usize, most: usize },
    /// The edit names an author node that does not exist.
    #[error("the graph {graph} has no node of that name: {node}")]
    UnknownNode { graph: String, node: String },
    /// The answer does not fit its question, which stays open.
    #[error("the interrupt {interrupt} stays open: {reason}")]
    Answer { interrupt: InterruptId, reason: NoVerdict },
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl RunResult {
    /// Returns the statuses of the run and its thread, and the error, as they are stored.
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
