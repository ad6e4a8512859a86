//! The code that SQLite and Postgres share: statements, rows, and their order.
//!
//! Enter at [`Backend`]: a type that implements it gets all of a store except [`Store`](super::Store). Invariant: a
//! statement that both databases understand is written once, and if they differ in a word,
//! [`Dialect`](perihelion_database::Dialect) chooses it. Deliberately absent: the parts that one of them does
//! differently for speed. Runs, commits, answers and events are one statement and one round trip on Postgres, and on
//! SQLite a transaction or a statement that several threads share.
//!
//! A condition in place of a join's `ON` is meant: SQLite takes the tables of a `CROSS JOIN` in the order in which they
//! are written.

pub(super) mod archive;
pub(super) mod decode;
mod effects;
mod events;
pub(super) mod leases;
mod listing;
mod removal;
pub(super) mod steps;
mod threads;
mod transfer;

use std::future::Future;

use chrono::{DateTime, Utc};
use perihelion_database::{Database, Dialect, Query, Transaction, query};
use sqlx::AssertSqlSafe;

use super::{
    Archive, BlobRow, Commit, Encoded, Error, EventRow, Fence, Loaded, PendingRow, Result, RunEnd,
    RunRow, StateCache, limits::moment,
};
use crate::clock;
use crate::ids::{InterruptId, RunId, ThreadId};

pub(super) use self::effects::sum_of_answer;
pub(super) use self::events::why_not_appended;

/// A database with its specific operations; each method has the contract of the trait method with the same name.
pub trait Backend: Send + Sync {
    fn database(&self) -> &Database;

    fn states(&self) -> &StateCache;

    /// Returns the files of archived threads, if this process has their directory.
    fn archive_files(&self) -> Option<&Archive>;

    fn begin_run(
        &self,
        fence: Fence,
        run: RunId,
        exports: bool,
    ) -> impl Future<Output = Result<RunRow>> + Send;

    fn end_run(&self, fence: Fence, run: RunId, end: RunEnd<'_>) -> impl Done;

    fn commit(&self, commit: &Commit) -> impl Done;

    /// Stores the write of a task with its texts; returns 0 if it was rejected or existed before.
    fn save_with(
        &self,
        fence: Fence,
        row: &PendingRow,
        blobs: &[BlobRow],
    ) -> impl Future<Output = Result<u64>> + Send;

    /// Reads the rows that restore a thread; with `since`, the steps from there on and no snapshot.
    fn load(
        &self,
        thread: ThreadId,
        at: Option<u64>,
        since: Option<u64>,
    ) -> impl Future<Output = Result<Loaded>> + Send;

    /// Answers an interrupt and wakes its thread; says whether it was open.
    fn answer(
        &self,
        interrupt: InterruptId,
        answer: &Encoded,
    ) -> impl Future<Output = Result<bool>> + Send;

    fn append_events(&self, fence: Fence, batch: &EventRow) -> impl Done;
}

pub(super) struct ThreadAccess<'a, 't> {
    pub(super) transaction: &'a mut Transaction<'t>,
    pub(super) thread: ThreadId,
}

/// The end of a write.
pub trait Done: Future<Output = Result<()>> + Send {}

impl<F: Future<Output = Result<()>> + Send> Done for F {}

/// Returns this machine's time, which dates the rows of a SQLite file: all its processes share the machine.
///
/// Postgres has a separate clock for dates.
pub(super) fn now() -> DateTime<Utc> {
    moment(clock::now())
}

/// Writes a statement in the words of a database: of each mark, its words for SQLite and for Postgres.
fn worded(dialect: Dialect, statement: &str, marks: &[(&str, &str, &str)]) -> Query {
    let write = |text: String, (mark, sqlite, postgres): &(&str, &str, &str)| {
        text.replace(mark, dialect.pick(sqlite, postgres))
    };
    query(AssertSqlSafe(marks.iter().fold(statement.to_owned(), write)))
}

/// Returns the text for rows that are read to be changed: Postgres locks them, SQLite's transaction has the whole file.
macro_rules! locking {
    ($dialect:expr, $lock:literal, $statement:expr) => {
        $dialect.pick($statement, concat!($statement, $lock))
    };
}
use locking;

macro_rules! thread_row {
    () => {
        concat!("SELECT ", decode::thread_columns!(), " FROM thread WHERE id = $1")
    };
}
use thread_row;

pub(super) async fn info(database: &Database, thread: ThreadId) -> Result<decode::ThreadRow> {
    let row = database.fetch_short(&query(thread_row!()).bind(thread.0)).await?;
    decode::thread(&row.ok_or(Error::UnknownThread(thread))?)
}

/// Does what needs the rows of a thread; an archived one is brought back first.
async fn with_rows<B: Backend, T: Send, F: Future<Output = Result<T>> + Send>(
    store: &B,
    work: impl Fn() -> F + Send + Sync,
) -> Result<T> {
    loop {
        match work().await {
            Err(Error::Archived { thread, .. }) if store.archive_files().is_some() => {
                archive::bring_back(store, thread).await?;
            }
            done => return done,
        }
    }
}

/// Rejects a thread whose rows are in a file.
async fn present(database: &Database, thread: ThreadId) -> Result<()> {
    info(database, thread).await?.info.present().map(drop)
}
