//! Why the service refused.

use uuid::Uuid;

use super::kept;
use perihelion_database as database;
use perihelion_engine::checkpoint;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime as runtime;

/// Why the service refused; the text tells the reader what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Rows(#[from] kept::Error),
    #[error(transparent)]
    Runtime(#[from] runtime::Error),
    #[error(
        "the service cannot use a database in memory; pass another with --database, such as sqlite:perihelion.db"
    )]
    NoDatabase,
    #[error("Thread with ID {0} not found")]
    UnknownThread(ThreadId),
    #[error("Run with ID {0} not found")]
    UnknownRun(Uuid),
    #[error(
        "Thread is already running a task. Wait for it to finish or choose a different multitask strategy."
    )]
    Busy,
    /// A thread stays with the graph that ran it first.
    #[error(
        "the thread {thread} belongs to the graph {graph}; use an assistant of {graph}, or another thread"
    )]
    OtherGraph { thread: ThreadId, graph: String },
    #[error("unknown checkpoint of this thread: {0}")]
    UnknownCheckpoint(String),
    /// Somebody may not do what they asked for.
    #[error("the credentials lack a required scope: {0}")]
    Forbidden(&'static str),
    /// The thread is a user's whom somebody is not, and may not act for.
    #[error("the thread belongs to another user; start your own thread")]
    OthersThread,
    /// The thread is a user's who was shut out.
    #[error("the thread cannot continue because its user is disabled: {0}")]
    UserDisabled(String),
    /// The tenant has as much as it may have.
    #[error("the tenant reached a limit: {0}")]
    TooMuch(String),
    /// The tenant has spent what it may spend in a day.
    #[error("the tenant's daily budget is used up until 00:00 UTC: {taken} of {most} {name}")]
    DaySpent { name: &'static str, most: u64, taken: u64 },
    #[error(transparent)]
    People(#[from] perihelion_people::Error),
    /// A resume that fits no open question.
    #[error("the answer fits no open question: {0}")]
    Answer(String),
    #[error("the update of the state cannot be read: {0}")]
    Update(String),
}

impl From<perihelion_engine::checkpoint::Error> for Error {
    fn from(error: perihelion_engine::checkpoint::Error) -> Self {
        Self::Runtime(error.into())
    }
}

impl From<perihelion_engine::runner::Error> for Error {
    fn from(error: perihelion_engine::runner::Error) -> Self {
        Self::Runtime(error.into())
    }
}

impl Error {
    /// Returns whether the database could not be used for now, so that trying again may help.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Rows(error) => error.is_passing(),
            Self::Runtime(runtime::Error::Store(error)) => error.is_passing(),
            _ => false,
        }
    }

    /// Returns what is to blame for a drive of a run that was broken off.
    pub(super) fn cause(&self) -> Cause {
        let of_database = |is_whole: bool| if is_whole { Cause::Store } else { Cause::Statement };
        match self {
            Self::Runtime(runtime::Error::Store(error)) => {
                if error.is_of_another_writer() {
                    Cause::Store
                } else if matches!(error, checkpoint::Error::Database(database::Error::Failed(_))) {
                    of_database(error.is_passing())
                } else if error.is_of_database() {
                    Cause::Store
                } else {
                    Cause::Order
                }
            }
            Self::Rows(kept::Error::Database(error))
            | Self::Runtime(runtime::Error::Database(error))
            | Self::People(perihelion_people::Error::Database(error)) => {
                of_database(error.is_passing())
            }
            _ => Cause::Order,
        }
    }
}

/// What is to blame for a drive of a run that was broken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The whole database, or another process that took the thread over: it says nothing of the run.
    Store,
    /// The database refused one statement, which may pass or not.
    Statement,
    /// What was ordered.
    Order,
}
