//! Why a store refused or failed.

use chrono::{DateTime, Utc};
use perihelion_database as database;
pub use perihelion_database::Cause;

use crate::ids::{InterruptId, ThreadId};

/// Why a store refused or failed; the text contains the next step for the reader.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant names its fields")]
pub enum Error {
    /// There is no thread with this ID.
    #[error("unknown thread: {0}; run `perihelion threads` to list threads")]
    UnknownThread(ThreadId),
    /// A thread with this ID exists.
    #[error(
        "the thread exists already: {0}; use another ID, or run `perihelion threads delete {0}` first"
    )]
    ThreadExists(ThreadId),
    /// The thread has no step with this number.
    #[error(
        "the thread {thread} has no step {seq}; its newest is {head}, and `perihelion threads history` lists them"
    )]
    UnknownStep { thread: ThreadId, seq: u64, head: u64 },
    /// The thread has no run with this number.
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
    /// The thread changed between the decision about it and the write.
    #[error(
        "the thread {thread} changed after it was read, so it was left unchanged; read it and try again"
    )]
    Moved { thread: ThreadId },
    /// The step returns to an earlier step that would be deleted, and has no snapshot of its state.
    #[error(
        "step {seq} of the thread {thread} returns to an earlier step and has no snapshot, so no step was deleted; shorten the thread again"
    )]
    BareReturn { thread: ThreadId, seq: u64 },
    /// The step does not follow the head: another process committed first.
    #[error(
        "the thread {thread} is at step {head}, so step {seq} cannot be committed; nothing was written"
    )]
    Conflict { thread: ThreadId, seq: u64, head: u64 },
    /// A batch of events does not follow the newest one.
    #[error(
        "the events of the thread {thread} reach to {last}, so a batch cannot begin at {first}; nothing was written"
    )]
    EventGap { thread: ThreadId, first: u64, last: u64 },
    /// There is no question with this ID.
    #[error("unknown interrupt: {0}; `perihelion threads show` lists the open ones")]
    UnknownInterrupt(InterruptId),
    /// The question has an answer, which is final.
    #[error("the interrupt {0} was already answered; each is answered once")]
    InterruptClosed(InterruptId),
    /// The task has no started effect with that key, or the effect has ended with another outcome.
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
    Corrupt {
        thread: ThreadId,
        seq: u64,
        #[source]
        reason: Cause,
    },
    /// A text that the state references is missing, or does not have its hash.
    #[error(
        "{what} of the thread {thread} cannot be read: {reason}; restore it from a backup or fork an earlier step"
    )]
    Blob {
        thread: ThreadId,
        what: String,
        #[source]
        reason: Cause,
    },
    /// The thread is in a file of the archive, and cannot be brought back.
    #[error(
        "the file {file} of the archived thread {thread} cannot be read: {reason}; set archive.dir to its directory or restore it from a backup"
    )]
    Archived {
        thread: ThreadId,
        file: String,
        #[source]
        reason: Cause,
    },
    /// A thread cannot be moved to the archive.
    #[error("cannot write the file {file} of the archive: {reason}; check archive.dir")]
    Archive {
        file: String,
        #[source]
        reason: Cause,
    },
    /// A stored value cannot be decoded.
    #[error("a stored value cannot be read: {0}")]
    Damaged(#[source] Cause),
    /// A stored value is encrypted with a key that is not configured.
    #[error(
        "the stored data is encrypted with the key {key}, which is not configured; add it to encryption.keys. The data is intact"
    )]
    NoKey { key: String },
    /// The key under this name did not encrypt the value.
    #[error(
        "the stored data is encrypted with another key than the one configured under the name {key}; configure the right key. The data is intact"
    )]
    WrongKey { key: String },
    /// The database is encrypted, and this process would write plain text.
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
    Keys(#[source] Cause),
    /// A value has no JSON form.
    #[error("a value cannot be stored as JSON: {0}")]
    Encode(#[source] serde_json::Error),
    /// The compression of a value failed.
    #[error("a value cannot be compressed: {0}")]
    Compress(#[source] std::io::Error),
    /// The database does not exist.
    #[error(
        "there is no database at {url}; `perihelion run` makes one, --database or DATABASE_URL names another"
    )]
    NoDatabase { url: String },
    /// The database could not be used, or reported an error.
    #[error(transparent)]
    Database(database::Error),
    /// The file or stream that a thread is exported to refused it.
    #[error("cannot write the exported thread: {0}")]
    Export(#[source] std::io::Error),
    /// A dump file cannot be imported.
    #[error("cannot import the thread: {0}")]
    Import(String),
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Makes the error for a stored value that cannot be read.
    pub fn damaged(cause: impl Into<Cause>) -> Self {
        Self::Damaged(cause.into())
    }

    pub(super) fn archived(thread: ThreadId, file: &str, reason: impl Into<Cause>) -> Self {
        Self::Archived { thread, file: file.to_owned(), reason: reason.into() }
    }

    pub(crate) fn corrupt(thread: ThreadId, seq: u64, reason: impl Into<Cause>) -> Self {
        Self::Corrupt { thread, seq, reason: reason.into() }
    }

    pub(crate) fn missing(thread: ThreadId, seq: u64) -> Self {
        Self::corrupt(thread, seq, "it is missing in the database")
    }

    /// Makes the error for a step whose hash does not match.
    pub(super) fn unfit(thread: ThreadId, seq: u64) -> Self {
        Self::corrupt(thread, seq, "its hash does not fit its content")
    }

    /// Returns whether the stored data of one thread is the cause: it is damaged or altered, or it needs a missing key or a
    /// later version.
    pub fn is_of_thread(&self) -> bool {
        matches!(
            self,
            Self::Corrupt { .. }
                | Self::Blob { .. }
                | Self::Archived { .. }
                | Self::Damaged(_)
                | Self::Forged { .. }
                | Self::NewerState { .. }
                | Self::NoKey { .. }
                | Self::WrongKey { .. }
        )
    }

    /// Returns whether the database is the cause, and not the request.
    pub fn is_of_database(&self) -> bool {
        match self {
            Self::NoDatabase { .. } => true,
            Self::Database(error) => !matches!(error, database::Error::Unscrubbed { .. }),
            _ => false,
        }
    }

    /// Returns whether the database could not be reached, or did not answer; a later attempt may succeed.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_unreachable())
    }

    /// Returns whether another process wrote to the thread after it was claimed or read.
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
    /// The same write can be tried again later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_passing())
    }
}

impl From<database::Error> for Error {
    fn from(error: database::Error) -> Self {
        match error {
            column @ database::Error::Column { .. } => Self::Damaged(column.into()),
            other => Self::Database(other),
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}
