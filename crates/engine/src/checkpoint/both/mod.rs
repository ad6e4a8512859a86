//! What SQLite and Postgres say alike: statements, rows, and what is done in which order.
//!
//! Enter at [`Backend`]: what has one is all that a store is but [`Store`](super::Store) itself. Invariant: a statement
//! that both databases understand stands here once, and where they differ in a word, [`Dialect`](perihelion_database::Dialect) chooses it. Deliberately
//! absent: what one of them does in a way of its own, for speed: runs, commits, answers and events are one statement and
//! one round trip on Postgres, and on SQLite a transaction or a statement that others may share.
//!
//! A condition in place of a join's `ON` is meant: SQLite takes the tables of a `CROSS JOIN` in the order in which they
//! are written.

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
use perihelion_database::Database;

use super::{
    BlobRow, Commit, Encoded, Error, EventRow, Fence, Loaded, PendingRow, RunEnd, RunRow,
    StateCache, limits::moment,
};
use crate::clock;
use crate::ids::{InterruptId, RunId, ThreadId};

pub(super) use self::{
    effects::sum_of_answer,
    events::why_not_appended,
    threads::{info, read},
};

/// A database, with what it does in a way of its own; each method keeps the promise of the trait's that is named like it.
pub trait Backend: Send + Sync {
    /// Returns the database, for all that is done alike.
    fn database(&self) -> &Database;

    /// Returns the states that were restored from the database.
    fn states(&self) -> &StateCache;

    fn begin_run(
        &self,
        fence: Fence,
        run: RunId,
        exports: bool,
    ) -> impl Future<Output = Result<RunRow, Error>> + Send;

    fn end_run(&self, fence: Fence, run: RunId, end: RunEnd<'_>) -> impl Done;

    fn commit(&self, commit: &Commit) -> impl Done;

    /// Keeps what a task wrote with the texts that it brings; returns 0 where it was refused, or is there already.
    fn save_with(
        &self,
        fence: Fence,
        row: &PendingRow,
        blobs: &[BlobRow],
    ) -> impl Future<Output = Result<u64, Error>> + Send;

    /// Reads what is needed to restore a thread; where `since` is given, the steps from there on and no snapshot.
    fn load(
        &self,
        thread: ThreadId,
        at: Option<u64>,
        since: Option<u64>,
    ) -> impl Future<Output = Result<Loaded, Error>> + Send;

    /// Answers an interrupt and wakes its thread; says whether it was open.
    fn answer(
        &self,
        interrupt: InterruptId,
        answer: &Encoded,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    fn append_events(&self, fence: Fence, batch: &EventRow) -> impl Done;
}

/// The end of a write.
pub trait Done: Future<Output = Result<(), Error>> + Send {}

impl<F: Future<Output = Result<(), Error>> + Send> Done for F {}

/// Returns this machine's time, which dates the rows of a SQLite file: all its processes share the machine.
///
/// Postgres dates by a clock of its own.
pub(super) fn now() -> DateTime<Utc> {
    moment(clock::now())
}

/// Returns the text for rows that are read to be changed: Postgres locks them, SQLite's transaction has the whole file.
macro_rules! locking {
    ($dialect:expr, $lock:literal, $statement:expr) => {
        $dialect.pick($statement, concat!($statement, $lock))
    };
}
use locking;
