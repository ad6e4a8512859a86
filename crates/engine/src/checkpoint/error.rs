//! Why a store refused or failed.

use chrono::{DateTime, Utc};
use perihelion_database as database;

use crate::ids::{InterruptId, ThreadId};

/// Why a store refused or failed; the text tells the reader what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("unknown thread: {0}; run `perihelion threads` to list threads")]
    UnknownThread(ThreadId),
    #[error("the thread exists already: {0}")]
    ThreadExists(ThreadId),
    #[error(
        "the thread {thread} has no step {seq}; its newest is {head}, and `perihelion threads history` lists them"
    )]
    UnknownStep { thread: ThreadId, seq: u64, head: u64 },
    #[error(
        "the thread {thread} has no run {number}; it has {newest}, and `perihelion threads show` lists them"
    )]
    UnknownRun { thread: ThreadId, number: u32, newest: usize },
    /// Another process holds the thread's lease.
    #[error(
        "the thread {thread} is being run by {owner} until {until} at the earliest; wait for it, or stop that process"
    )]
    Busy { thread: ThreadId, owner: String, until: DateTime<Utc> },
    /// The writer's fencing token is stale: another process took the thread over.
    #[error(
        "this process lost the thread {thread} to another one (its fencing token {token} was replaced by {current}); nothing was written"
    )]
    Fenced { thread: ThreadId, token: u64, current: u64 },
    /// The thread is not any more as it was when somebody decided over it.
    #[error(
        "the thread {thread} was taken up since it was looked at; it was left as it is, look at it again"
    )]
    Moved { thread: ThreadId },
    /// Nobody keeps what a return to an earlier step came to, and that step would be dropped.
    #[error(
        "step {seq} of the thread {thread} goes back to an earlier one and has no snapshot; nothing was dropped, shorten the thread again"
    )]
    BareReturn { thread: ThreadId, seq: u64 },
    /// The step does not follow the head: somebody else committed first.
    #[error(
        "the thread {thread} is at step {head}, so step {seq} cannot be committed; nothing was written"
    )]
    Conflict { thread: ThreadId, seq: u64, head: u64 },
    /// A batch of events does not follow the newest one.
    #[error(
        "the events of the thread {thread} reach to {last}, so a batch cannot begin at {first}; nothing was written"
    )]
    EventGap { thread: ThreadId, first: u64, last: u64 },
    #[error("unknown interrupt: {0}; `perihelion threads show` lists the open ones")]
    UnknownInterrupt(InterruptId),
    #[error("the interrupt {0} was already answered; each is answered once")]
    InterruptClosed(InterruptId),
    /// There is no started effect to settle at that place, or it has ended with another outcome.
    #[error(
        "the thread {thread} has no unfinished effect with that key at step {step}, task {task}; nothing was written"
    )]
    UnknownEffect { thread: ThreadId, step: u64, task: u32 },
    /// The stored data has a newer schema version than this graph's state.
    #[error(
        "the thread {thread} was written with state schema {found}, this version knows {known}; upgrade this binary"
    )]
    NewerState { thread: ThreadId, found: u32, known: u32 },
    /// The stored hash does not fit the stored bytes.
    #[error(
        "step {seq} of the thread {thread} is damaged: {reason}; restore it from a backup or fork an earlier step"
    )]
    Corrupt { thread: ThreadId, seq: u64, reason: String },
    /// A text that a state only names is missing, or is not the one that was named.
    #[error(
        "{what} of the thread {thread} cannot be read: {reason}; restore it from a backup or fork an earlier step"
    )]
    Blob { thread: ThreadId, what: String, reason: String },
    #[error("a stored value cannot be read: {0}")]
    Damaged(String),
    /// A stored value is encrypted, and the key is not there.
    #[error(
        "the stored data is encrypted with the key {key}, which is not configured; name it in encryption.keys, nothing is lost"
    )]
    NoKey { key: String },
    /// The key configured under a name is not the one that was.
    #[error(
        "the stored data is encrypted with another key than the one configured under the name {key}; configure the right one, nothing is lost"
    )]
    WrongKey { key: String },
    /// This process would write in the open what is encrypted otherwise.
    #[error(
        "the database is encrypted with the key {key}, which is not configured. Add it to `[encryption] keys`, or use another database"
    )]
    Unsealed { key: String },
    /// An encrypted value does not fit its place: it was altered, moved or replaced.
    #[error(
        "{what} of the thread {thread} was altered or moved since it was encrypted; restore it from a backup or fork an earlier step"
    )]
    Forged { thread: ThreadId, what: String },
    /// The keys cannot be used together.
    #[error("the encryption keys cannot be used: {0}")]
    Keys(String),
    #[error("a value cannot be stored as JSON: {0}")]
    Encode(#[source] serde_json::Error),
    #[error("a value cannot be compressed: {0}")]
    Compress(#[source] std::io::Error),
    /// Nothing can be read from a database that was never made.
    #[error(
        "there is no database at {url}; `perihelion run` makes one, --database or DATABASE_URL names another"
    )]
    NoDatabase { url: String },
    /// The database could not be used, or answered with an error of its own.
    #[error(transparent)]
    Database(database::Error),
    /// The file or stream that a thread is exported to refused it.
    #[error("cannot write the exported thread: {0}")]
    Export(#[source] std::io::Error),
    /// A dump file cannot be imported.
    #[error("cannot import the thread: {0}")]
    Import(String),
}

impl Error {
    /// Says that a step is missing.
    pub(crate) fn missing(thread: ThreadId, seq: u64) -> Self {
        Self::Corrupt { thread, seq, reason: "it is missing in the database".to_owned() }
    }

    /// Says that the hash of a step does not fit.
    pub(super) fn unfit(thread: ThreadId, seq: u64) -> Self {
        Self::Corrupt { thread, seq, reason: "its hash does not fit its content".to_owned() }
    }

    /// Returns whether what is stored of one thread is to blame: damaged, altered, or written under a key or by a
    /// version that is not here.
    pub fn is_of_thread(&self) -> bool {
        matches!(
            self,
            Self::Corrupt { .. }
                | Self::Blob { .. }
                | Self::Damaged(_)
                | Self::Forged { .. }
                | Self::NewerState { .. }
                | Self::NoKey { .. }
                | Self::WrongKey { .. }
        )
    }

    /// Returns whether the database is to blame, not what was asked of it.
    pub fn is_of_database(&self) -> bool {
        match self {
            Self::NoDatabase { .. } => true,
            Self::Database(error) => !matches!(error, database::Error::Unscrubbed { .. }),
            _ => false,
        }
    }

    /// Returns whether the database could not be reached, which may pass by itself.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Database(database::Error::Unreachable { .. }))
    }

    /// Returns whether another process wrote to the thread since it was taken or read.
    pub fn is_of_another_writer(&self) -> bool {
        matches!(
            self,
            Self::Fenced { .. }
                | Self::Conflict { .. }
                | Self::EventGap { .. }
                | Self::Moved { .. }
        )
    }

    /// Returns whether the database could not be used for now: gone, restarting, busy or full.
    ///
    /// Whatever was to be written may be tried again as it is, once that has passed.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_passing())
    }
}

impl From<database::Error> for Error {
    fn from(error: database::Error) -> Self {
        match error {
            column @ database::Error::Column { .. } => Self::Damaged(column.to_string()),
            other => Self::Database(other),
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}
