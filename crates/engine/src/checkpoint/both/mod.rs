//! What SQLite and Postgres say alike: statements, rows, and what is done in which order.
//!
//! Enter at [`Backend`]: what has one is all that a store is but [`Store`](super::Store) itself. Invariant: a statement
//! that both databases understand stands here once, and where they differ in a word, [`Dialect`](perihelion_database::Dialect) chooses it. Deliberately
//! absent: what one of them does in a way of its own, for speed: claims, runs, commits and what else is fenced is one
//! statement and one round trip on Postgres, and on SQLite a transaction that others may share.
//!
//! A condition in place of a join's `ON` is meant: SQLite takes the tables of a `CROSS JOIN` in the order in which they
//! are written.

mod blobs;
pub(super) mod columns;
pub(super) mod decode;
mod effects;
mod events;
mod export;
mod import;
mod leases;
mod listing;
mod outbox;
mod parts;
mod questions;
pub(super) mod refusal;
mod removal;
pub(super) mod steps;
mod threads;

use std::{future::Future, time::Duration};

use chrono::{DateTime, Utc};
use perihelion_database::Database;

use super::{
    BlobRow, Commit, EffectRow, EffectSettlement, Encoded, Error, EventRow, Loaded, PendingRow,
    RunEnd, RunRow, StateCache, ThreadInfo, limits::moment,
};
use crate::clock;
use crate::ids::{InterruptId, RunId, ThreadId};

pub(super) use self::{
    effects::bind_effect,
    events::why_not_appended,
    leases::ended,
    questions::sum_of_answer,
    threads::{info, read},
};

/// A claim of a thread.
#[derive(Clone, Copy)]
pub struct Claim<'a> {
    pub(super) thread: ThreadId,
    /// Where it is given, only while it is the newest and the thread may continue.
    pub(super) fence: Option<u64>,
    pub(super) owner: &'a str,
    pub(super) ttl: Duration,
    pub(super) force: bool,
}

/// What a database does in a way of its own; each method keeps the promise of the trait's that is named like it.
pub trait Backend: Send + Sync {
    /// Returns the database, for all that is done alike.
    fn database(&self) -> &Database;

    /// Returns the states that were restored from the database.
    fn states(&self) -> &StateCache;

    fn claim(&self, claim: Claim<'_>) -> impl Future<Output = Result<ThreadInfo, Error>> + Send;

    fn begin_run(
        &self,
        thread: ThreadId,
        fence: u64,
        run: RunId,
        exports_trace: bool,
    ) -> impl Future<Output = Result<RunRow, Error>> + Send;

    fn end_run(
        &self,
        thread: ThreadId,
        fence: u64,
        run: RunId,
        end: RunEnd<'_>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    fn commit(&self, commit: &Commit) -> impl Future<Output = Result<(), Error>> + Send;

    fn save_pending(
        &self,
        thread: ThreadId,
        fence: u64,
        row: &PendingRow,
        blobs: &[BlobRow],
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Reads what is needed to restore a thread; where `since` is given, the steps from there on and no snapshot.
    fn load(
        &self,
        thread: ThreadId,
        at: Option<u64>,
        since: Option<u64>,
    ) -> impl Future<Output = Result<Loaded, Error>> + Send;

    /// Records effects, in one attempt.
    fn record(
        &self,
        thread: ThreadId,
        fence: u64,
        effects: &[EffectRow],
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Records the end of an effect, in one attempt.
    fn settle(
        &self,
        thread: ThreadId,
        fence: u64,
        end: &EffectSettlement,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Answers an interrupt and wakes its thread; says whether it was open.
    fn answer(
        &self,
        interrupt: InterruptId,
        answer: &Encoded,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Appends a batch of events, or finds it there already.
    fn append(
        &self,
        thread: ThreadId,
        fence: u64,
        batch: &EventRow,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

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
