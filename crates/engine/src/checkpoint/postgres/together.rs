//! What several threads write at the same time, in one statement.
//!
//! A statement costs the server far more than a row of it: with 32 threads, one statement each spends both
//! the server's and the client's time on parsing messages and waking processes.

use std::{collections::HashSet, future::Future, pin::pin, time::Duration};

use perihelion_database::postgres::is_broken;
use sqlx::PgConnection;

use super::{
    super::{
        Error,
        group_commit::{GroupCommit, Lane, Turn},
    },
    PostgresStore,
};
use crate::ids::ThreadId;

/// Statements under way at the same time in one process; what comes meanwhile waits, and is written together.
const LANES: usize = 2;

/// How long a write may keep its lane: far longer than a flush takes.
const PATIENCE: Duration = Duration::from_millis(50);

/// Rows in one statement.
const MOST: usize = 64;

/// Those who write rows of one kind.
pub(super) type Group<W> = GroupCommit<W, Fate>;

/// What became of a row that shared its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    /// It changed nothing; sent by itself it learns why, or waits for the one who holds the thread's row.
    Untouched,
    /// The reply was lost.
    Lost,
}

/// A row that can be written by itself, or in one statement with those of other threads.
pub(super) trait Shared: Clone + Send + Sync {
    fn thread(&self) -> ThreadId;

    /// Writes it by itself.
    fn alone(&self, store: &PostgresStore) -> impl Future<Output = Result<(), Error>> + Send;

    /// Finds out what became of it after a lost reply, and writes it if it is not there.
    fn recover(
        &self,
        store: &PostgresStore,
        error: sqlx::Error,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Writes rows of different threads, and returns the threads whose row was written.
    ///
    /// A row that another transaction holds is skipped, so that nobody waits for a stranger's thread and two
    /// statements with several threads in common cannot block each other.
    fn many(
        connection: &mut PgConnection,
        rows: &[&Self],
    ) -> impl Future<Output = Result<HashSet<ThreadId>, sqlx::Error>> + Send;
}

pub(super) fn group<W>() -> Group<W> {
    GroupCommit::new(LANES, MOST)
}

/// Writes a row, in a statement of its own unless others wait as well.
pub(super) async fn write<W: Shared>(
    store: &PostgresStore,
    group: &Group<W>,
    row: &W,
) -> Result<(), Error> {
    let fate = match group.turn(|| row.clone()).await {
        Turn::Alone(lane) => return alone(store, lane, row).await,
        Turn::Lead(batch) => match batch.alone() {
            Ok(lane) => return alone(store, lane, row).await,
            Err(batch) => {
                let fates = many(store, batch.jobs()).await;
                batch.tell(fates).unwrap_or(Fate::Lost)
            }
        },
        Turn::Written(fate) => fate,
        Turn::Lost => Fate::Lost,
    };
    match fate {
        Fate::Done => Ok(()),
        Fate::Untouched => row.alone(store).await,
        Fate::Lost => {
            let reason = std::io::Error::other("the connection broke during a commit");
            row.recover(store, reason.into()).await
        }
    }
}

/// Sends one row, and gives the lane up when it waits for the one who holds the thread's row.
async fn alone<W: Shared>(
    store: &PostgresStore,
    lane: Lane<W, Fate>,
    row: &W,
) -> Result<(), Error> {
    let mut sending = pin!(row.alone(store));
    match tokio::time::timeout(PATIENCE, &mut sending).await {
        Ok(done) => done,
        Err(_) => {
            drop(lane);
            sending.await
        }
    }
}

/// Writes what can be written in one statement; returns the fates in the order of the rows.
async fn many<W: Shared>(store: &PostgresStore, rows: &[W]) -> Vec<Fate> {
    let all = |fate| vec![fate; rows.len()];
    let Ok(mut connection) = store.connections.take().await else { return all(Fate::Untouched) };
    // Of two writers of one thread, one is stale; the second learns it by itself.
    let mut threads = HashSet::with_capacity(rows.len());
    let shared: Vec<&W> = rows.iter().filter(|row| threads.insert(row.thread())).collect();
    let sent = store.connections.brief(W::many(&mut connection, &shared)).await;
    match sent {
        Ok(mut written) => {
            connection.give_back();
            let done = rows.iter().map(|row| {
                if written.remove(&row.thread()) { Fate::Done } else { Fate::Untouched }
            });
            done.collect()
        }
        Err(error) if is_broken(&error) => all(Fate::Lost),
        Err(_) => {
            // The server refused the statement as a whole; which row is to blame shows when each goes alone.
            connection.give_back();
            all(Fate::Untouched)
        }
    }
}

/// Returns one column of rows.
pub(super) fn column<'a, W, T>(rows: &[&'a W], of: impl Fn(&'a W) -> T) -> Vec<T> {
    rows.iter().map(|row| of(row)).collect()
}
