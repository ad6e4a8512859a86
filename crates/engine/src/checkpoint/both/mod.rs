//! The code that SQLite and Postgres share: statements, rows, and their order.
//!
//! Enter at [`Backend`]: a type that implements it is a [`Store`]. Invariant: a statement that both databases understand
//! is written once, and if they differ in a word, [`Dialect`](perihelion_database::Dialect) chooses it. Deliberately
//! absent: the parts that one of them does differently for speed. Ends of runs, commits and events are one statement and
//! one round trip on Postgres, and on SQLite a transaction or a statement that several threads share.
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

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use perihelion_database::{Database, Dialect, Query, Transaction, query};
use sqlx::AssertSqlSafe;

use super::{
    Archive, Begun, BlobRow, Claim, Commit, Error, EventRow, Fence, Loaded, Outbox, PendingRow,
    Result, RunEnd, StateCache, Store, limits::moment,
};
use crate::clock::{self, Clock};
use crate::ids::{RunId, ThreadId};

pub(super) use self::events::why_not_appended;

/// A database with its specific operations; each method has the contract of the trait method with the same name.
pub trait Backend: Send + Sync {
    fn database(&self) -> &Database;

    fn states(&self) -> &StateCache;

    /// Returns the files of archived threads, if this process has their directory.
    fn archive_files(&self) -> Option<&Archive>;

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

    fn append_events(&self, fence: Fence, batch: &EventRow) -> impl Done;
}

#[async_trait]
impl<B: Backend> Store for B {
    async fn claim_and_begin(&self, claim: Claim<'_>, exports: bool) -> Result<Begun> {
        leases::claim_and_begin(self, claim, exports).await
    }

    fn outbox(&self) -> Option<&dyn Outbox> {
        Some(self)
    }

    async fn now(&self) -> Result<DateTime<Utc>> {
        let now = query("SELECT now() AS now");
        let row = match self.database().dialect() {
            Dialect::Sqlite => None,
            Dialect::Postgres => self.database().fetch_short(&now).await?,
        };
        Ok(row.map_or_else(|| Ok(clock::now()), |row| row.get("now"))?)
    }

    /// SQLite dates by the clock of the machine that its processes share, Postgres by one of its own.
    fn clock(&self, given: DateTime<Utc>) -> Clock {
        match self.database().dialect() {
            Dialect::Sqlite => Clock::default(),
            Dialect::Postgres => Clock::set_by(given),
        }
    }

    fn describe(&self) -> String {
        self.database().shown().to_owned()
    }

    /// On Postgres a delta up to this size stays whole in its row (see the migration), where compressing it would cost
    /// a commit more time than the bytes are worth.
    fn compress_above(&self) -> usize {
        match self.database().dialect() {
            Dialect::Sqlite => 2048,
            Dialect::Postgres => 3800,
        }
    }

    async fn close(&self) {
        self.database().close().await;
    }
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
