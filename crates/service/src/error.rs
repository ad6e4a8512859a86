//! Why the service refused.

use uuid::Uuid;

use super::kept;
use perihelion_database as database;
use perihelion_engine::checkpoint;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime as runtime;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the service refused; the text contains the next step for the reader.
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
    #[error(
        "the thread {thread} belongs to the graph {graph}; use an assistant of {graph}, or another thread"
    )]
    OtherGraph { thread: ThreadId, graph: String },
    #[error("unknown checkpoint of this thread: {0}")]
    UnknownCheckpoint(String),
    #[error("the credentials lack a required scope: {0}")]
    Forbidden(&'static str),
    #[error("the thread belongs to another user; start your own thread")]
    OthersThread,
    #[error("the thread cannot continue because its user is disabled: {0}")]
    UserDisabled(String),
    #[error("the tenant reached a limit: {0}")]
    TooMuch(String),
    #[error("the tenant's daily budget is used up until 00:00 UTC: {taken} of {most} {name}")]
    DaySpent { name: &'static str, most: u64, taken: u64 },
    #[error(transparent)]
    People(#[from] perihelion_people::Error),
    #[error("the answer fits no open question: {0}")]
    Answer(String),
    #[error(
        "conversations cannot be searched because threads are encrypted; search titles instead"
    )]
    Unsearchable,
    #[error("the update of the state cannot be read: {0}")]
    Update(#[source] serde_json::Error),
}

macro_rules! of_runtime {
    ($($kind:ty),+) => {$(
        impl From<$kind> for Error {
            fn from(error: $kind) -> Self {
                Self::Runtime(error.into())
            }
        }
    )+};
}

of_runtime!(checkpoint::Error, perihelion_engine::runner::Error);

impl Error {
    /// Returns whether a thread could not be created because there is one with its ID.
    pub fn is_of_existing_thread(&self) -> bool {
        use checkpoint::Error::ThreadExists;
        matches!(self, Self::Runtime(runtime::Error::Store(ThreadExists(_))))
    }

    /// Returns whether the database could not be used for now, so that trying again may help.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Rows(error) => error.is_passing(),
            Self::Runtime(error) => error.is_passing(),
            Self::People(perihelion_people::Error::Database(error)) => error.is_passing(),
            _ => false,
        }
    }

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The whole database, or another process that claimed the thread: independent of the run.
    Store,
    /// The database refused one statement, which may pass or not.
    Statement,
    /// What was ordered.
    Order,
}
