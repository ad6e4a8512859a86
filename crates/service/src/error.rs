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

    /// Returns whether another process has claimed the thread since.
    fn is_of_another_writer(&self) -> bool {
        matches!(self, Self::Runtime(runtime::Error::Store(error)) if error.is_of_another_writer())
    }

    /// Returns whether the thread may continue soon: the database could not be used for now, or another process has
    /// claimed the thread and may lose it again.
    pub fn may_pass(&self) -> bool {
        self.is_passing() || self.is_of_another_writer()
    }

    /// Returns whether the thread or its run is the cause, so that trying again soon cannot help.
    pub fn is_lasting(&self) -> bool {
        self.cause() == Cause::Order
    }

    pub(super) fn cause(&self) -> Cause {
        if self.may_pass() {
            return Cause::Store;
        }
        match self {
            Self::Runtime(runtime::Error::Store(error)) => {
                if matches!(error, checkpoint::Error::Database(database::Error::Failed(_))) {
                    Cause::Statement
                } else if error.is_of_database() {
                    Cause::Store
                } else {
                    Cause::Order
                }
            }
            Self::Rows(kept::Error::Database(_))
            | Self::Runtime(runtime::Error::Database(_))
            | Self::People(perihelion_people::Error::Database(_)) => Cause::Statement,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise a worker that drains would fail for a thread that another worker finished.
    #[test]
    fn a_thread_that_another_process_claimed_may_pass_and_a_damaged_one_may_not() {
        let thread = ThreadId::new();
        let claimed = checkpoint::Error::Fenced { thread, token: 1, current: 2 };
        let damaged = checkpoint::Error::Corrupt { thread, seq: 1, reason: "hash".into() };
        let read_only = database::Error::ReadOnly { url: "sqlite:t.db".to_owned() };
        let of = |error| Error::from(checkpoint::Error::from(error));
        let facts = |error: Error| (error.may_pass(), error.is_lasting());
        assert_eq!(facts(claimed.into()), (true, false));
        assert_eq!(facts(damaged.into()), (false, true));
        assert_eq!(facts(of(read_only)), (false, false));
        assert_eq!(facts(of(database::Error::Locked { url: String::new() })), (true, false));
    }
}
