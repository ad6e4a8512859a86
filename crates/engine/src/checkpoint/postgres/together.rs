//! Writes of several threads in one statement, batches of events included.
//!
//! A statement costs the server far more than a row: with 32 threads, separate statements spend the time of server and
//! client on parsing messages and waking processes.

use std::{collections::HashSet, future::Future, pin::pin, time::Duration};

use perihelion_database::{postgres::is_broken, query};
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::super::both::why_not_appended;
use super::super::group_commit::{GroupCommit, Lane, Turn};
use super::super::limits::big;
use super::super::{EventRow, Fence, Result};
use super::PostgresStore;
use crate::ids::ThreadId;

/// Concurrent statements of one process; further rows wait, and are written together.
const LANES: usize = 2;

/// How long a write may keep its lane: far longer than a flush takes.
const PATIENCE: Duration = Duration::from_millis(50);

const MOST: usize = 64;

pub(super) type Group<W> = GroupCommit<W, RowOutcome>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowOutcome {
    Done,
    /// The row changed nothing; a separate statement finds the reason, or waits for the lock on the thread's row.
    Untouched,
    /// The reply was lost.
    Lost,
}

/// A row that can be written in a separate statement, or in one with rows of other threads.
pub(super) trait Shared: Clone + Send + Sync {
    fn thread(&self) -> ThreadId;

    /// Writes it by itself.
    fn alone(&self, store: &PostgresStore) -> impl Future<Output = Result<()>> + Send;

    /// Finds out what became of it after a lost reply, and writes it if it is not there.
    fn recover(
        &self,
        store: &PostgresStore,
        error: sqlx::Error,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Writes rows of different threads, and returns the threads whose row was written.
    ///
    /// A row that another transaction has locked is skipped. No writer waits for the thread of another one, and two
    /// statements with several threads in common cannot block each other.
    fn many(
        connection: &mut PgConnection,
        rows: &[&Self],
    ) -> impl Future<Output = Result<HashSet<ThreadId>, sqlx::Error>> + Send;
}

pub(super) fn group<W>() -> Group<W> {
    GroupCommit::new(LANES, MOST)
}

/// Writes a row, in a separate statement unless other writers wait too.
pub(super) async fn write<W: Shared>(
    store: &PostgresStore,
    group: &Group<W>,
    row: &W,
) -> Result<()> {
    let fate = match group.turn(|| row.clone()).await {
        Turn::Alone(lane) => return alone(store, lane, row).await,
        Turn::Lead(batch) => match batch.alone() {
            Ok(lane) => return alone(store, lane, row).await,
            Err(batch) => {
                let fates = many(store, batch.jobs()).await;
                batch.tell(fates).unwrap_or(RowOutcome::Lost)
            }
        },
        Turn::Written(fate) => fate,
        Turn::Lost => RowOutcome::Lost,
    };
    match fate {
        RowOutcome::Done => Ok(()),
        RowOutcome::Untouched => row.alone(store).await,
        RowOutcome::Lost => {
            let reason = std::io::Error::other("the connection broke during a commit");
            row.recover(store, reason.into()).await
        }
    }
}

/// Sends one row, and gives up the lane if it waits for the lock on the thread's row.
async fn alone<W: Shared>(store: &PostgresStore, lane: Lane<W, RowOutcome>, row: &W) -> Result<()> {
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
async fn many<W: Shared>(store: &PostgresStore, rows: &[W]) -> Vec<RowOutcome> {
    let all = |fate| vec![fate; rows.len()];
    let Ok(mut connection) = store.connections.take().await else {
        return all(RowOutcome::Untouched);
    };
    // Of two writers of one thread, one is stale; the second learns it by itself.
    let mut threads = HashSet::with_capacity(rows.len());
    let shared: Vec<&W> = rows.iter().filter(|row| threads.insert(row.thread())).collect();
    let sent = store.connections.brief(W::many(&mut connection, &shared)).await;
    match sent {
        Ok(mut written) => {
            connection.give_back();
            let done = rows.iter().map(|row| {
                if written.remove(&row.thread()) { RowOutcome::Done } else { RowOutcome::Untouched }
            });
            done.collect()
        }
        Err(error) if is_broken(&error) => all(RowOutcome::Lost),
        Err(_) => {
            // The server refused the statement as a whole; which row is to blame shows when each goes alone.
            connection.give_back();
            all(RowOutcome::Untouched)
        }
    }
}

pub(super) fn column<'a, W, T>(rows: &[&'a W], of: impl Fn(&'a W) -> T) -> Vec<T> {
    rows.iter().map(|row| of(row)).collect()
}

/// Moves the mark, which checks fence and place and locks the thread's row, and calls the listeners once
/// per batch: notifying more often would make commits wait for each other.
const APPEND: &str = "WITH leased AS (
        UPDATE thread SET events = $3 + $4 - 1, events_step = $5
        WHERE id = $1 AND fence = $2 AND events = $3 - 1
        RETURNING id
     ), kept AS (
        INSERT INTO event (thread_id, first_id, events, step, run, codec, body)
        SELECT id, $3, $4, $5, $6, $7, $8 FROM leased
     )
     SELECT count(pg_notify('perihelion_events', concat(id, ' ', $3 + $4 - 1))::text) FROM leased";

/// The same for several threads at once.
const APPEND_MANY: &str = "WITH input AS (
        SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::int[], $5::bigint[], $6::uuid[],
            $7::smallint[], $8::bytea[])
        AS t (id, fence, first_id, count, step, run, codec, body)
     ), free AS (
        SELECT thread.id FROM thread JOIN input USING (id)
        WHERE thread.fence = input.fence AND thread.events = input.first_id - 1
        FOR NO KEY UPDATE OF thread SKIP LOCKED
     ), leased AS (
        UPDATE thread SET events = input.first_id + input.count - 1, events_step = input.step
        FROM free JOIN input USING (id)
        WHERE thread.id = free.id AND thread.fence = input.fence AND thread.events = input.first_id - 1
        RETURNING thread.id
     ), kept AS (
        INSERT INTO event (thread_id, first_id, events, step, run, codec, body)
        SELECT id, first_id, count, input.step, run, codec, body FROM leased JOIN input USING (id)
     )
     SELECT id, pg_notify('perihelion_events', concat(id, ' ', first_id + count - 1))::text
     FROM leased JOIN input USING (id)";

#[derive(Clone)]
pub(super) struct Append {
    pub(super) fence: Fence,
    pub(super) batch: EventRow,
}

impl Shared for Append {
    fn thread(&self) -> ThreadId {
        self.fence.thread
    }

    async fn alone(&self, store: &PostgresStore) -> Result<()> {
        let Self { fence, batch } = self;
        let append = query(APPEND)
            .binds((fence.thread.0, big(fence.token), big(batch.first), batch.count as i32))
            .binds((big(batch.step), batch.run.0, batch.body.codec as i16, &batch.body.bytes[..]));
        let appended = store.database.fetch_short(&append).await?;
        if appended.map_or(Ok(0), |row| row.get::<i64>(0))? > 0 {
            return Ok(());
        }
        why_not_appended(&store.database, *fence, batch).await
    }

    /// A batch that is there is known by its ids and its run.
    async fn recover(&self, store: &PostgresStore, _: sqlx::Error) -> Result<()> {
        self.alone(store).await
    }

    async fn many(
        connection: &mut PgConnection,
        rows: &[&Self],
    ) -> Result<HashSet<ThreadId>, sqlx::Error> {
        let rows = sqlx::query(APPEND_MANY)
            .bind(column(rows, |row| row.fence.thread.0))
            .bind(column(rows, |row| big(row.fence.token)))
            .bind(column(rows, |row| big(row.batch.first)))
            .bind(column(rows, |row| row.batch.count as i32))
            .bind(column(rows, |row| big(row.batch.step)))
            .bind(column(rows, |row| row.batch.run.0))
            .bind(column(rows, |row| row.batch.body.codec as i16))
            .bind(column(rows, |row| &row.batch.body.bytes[..]))
            .fetch_all(connection)
            .await?;
        rows.iter().map(|row| row.try_get::<Uuid, _>(0).map(ThreadId)).collect()
    }
}
