//! The logs of what runs told.

use std::{collections::HashSet, time::Duration};

use super::{
    super::{
        Error, EventMark, EventRow, decode,
        limits::{big, micros},
    },
    refusal::explain,
    threads,
    together::{Shared, column},
};
use crate::ids::ThreadId;
use perihelion_database::{idempotent, postgres::Connections};
use sqlx::{PgConnection, Row};
use uuid::Uuid;

/// Moves the mark, which checks fence and place and locks the thread's row, and calls the listeners once
/// per batch: notifying more often would make commits wait for each other.
const APPEND: &str = "WITH held AS (
        UPDATE thread SET events = $3 + $4 - 1, events_step = $5
        WHERE id = $1 AND fence = $2 AND events = $3 - 1
        RETURNING id
     ), kept AS (
        INSERT INTO event (thread_id, first_id, events, step, run, codec, body)
        SELECT id, $3, $4, $5, $6, $7, $8 FROM held
     )
     SELECT count(pg_notify('perihelion_events', concat(id, ' ', $3 + $4 - 1))::text) FROM held";

/// Whether a batch is there already: ids are given once, so it is this writer's own.
const IS_THERE: &str = "SELECT t.events, EXISTS (SELECT 1 FROM event e
        WHERE e.thread_id = t.id AND e.first_id = $2 AND e.events = $3 AND e.run = $4)
     FROM thread t WHERE t.id = $1";

/// The same for several threads at once.
const APPEND_MANY: &str = "WITH input AS (
        SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::int[], $5::bigint[], $6::uuid[],
            $7::smallint[], $8::bytea[])
        AS t (id, fence, first_id, count, step, run, codec, body)
     ), free AS (
        SELECT thread.id FROM thread JOIN input USING (id)
        WHERE thread.fence = input.fence AND thread.events = input.first_id - 1
        FOR NO KEY UPDATE OF thread SKIP LOCKED
     ), held AS (
        UPDATE thread SET events = input.first_id + input.count - 1, events_step = input.step
        FROM free JOIN input USING (id)
        WHERE thread.id = free.id AND thread.fence = input.fence AND thread.events = input.first_id - 1
        RETURNING thread.id
     ), kept AS (
        INSERT INTO event (thread_id, first_id, events, step, run, codec, body)
        SELECT id, first_id, count, input.step, run, codec, body FROM held JOIN input USING (id)
     )
     SELECT id, pg_notify('perihelion_events', concat(id, ' ', first_id + count - 1))::text
     FROM held JOIN input USING (id)";

/// A batch on its way to its thread's log.
#[derive(Clone)]
pub(super) struct Append {
    pub(super) thread: ThreadId,
    pub(super) fence: u64,
    pub(super) batch: EventRow,
}

impl Shared for Append {
    fn thread(&self) -> ThreadId {
        self.thread
    }

    async fn alone(&self, connections: &Connections) -> Result<(), Error> {
        let Self { thread, fence, batch } = self;
        let held: i64 = idempotent!(connections, |c| sqlx::query_scalar(APPEND)
            .bind(thread.0)
            .bind(big(*fence))
            .bind(big(batch.first))
            .bind(batch.count as i32)
            .bind(big(batch.step))
            .bind(batch.run.0)
            .bind(batch.body.codec as i16)
            .bind(&batch.body.bytes[..])
            .fetch_one(&mut *c))?;
        if held > 0 {
            return Ok(());
        }
        explain(connections, *thread, *fence, |_| Ok(())).await?;
        let (last, is_there): (i64, bool) = idempotent!(connections, |c| sqlx::query_as(IS_THERE)
            .bind(thread.0)
            .bind(big(batch.first))
            .bind(batch.count as i32)
            .bind(batch.run.0)
            .fetch_one(&mut *c))?;
        match is_there {
            true => Ok(()),
            false => {
                Err(Error::EventGap { thread: *thread, first: batch.first, last: last as u64 })
            }
        }
    }

    /// A batch that is there is known by its ids and its run.
    async fn recover(&self, connections: &Connections, _: sqlx::Error) -> Result<(), Error> {
        self.alone(connections).await
    }

    async fn many(
        connection: &mut PgConnection,
        rows: &[&Self],
    ) -> Result<HashSet<ThreadId>, sqlx::Error> {
        let rows = sqlx::query(APPEND_MANY)
            .bind(column(rows, |row| row.thread.0))
            .bind(column(rows, |row| big(row.fence)))
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

pub(super) async fn mark(connections: &Connections, thread: ThreadId) -> Result<EventMark, Error> {
    let row: Option<(i64, i64)> = idempotent!(connections, |c| sqlx::query_as(
        "SELECT events, events_step FROM thread WHERE id = $1"
    )
    .bind(thread.0)
    .fetch_optional(&mut *c))?;
    let (last, step) = row.ok_or(Error::UnknownThread(thread))?;
    Ok(EventMark { last: last as u64, step: step as u64 })
}

const AFTER: &str = "SELECT first_id, events, run, step, codec, body, at FROM event
     WHERE thread_id = $1 AND first_id + events - 1 > $2 AND first_id >= coalesce((
        SELECT max(first_id) FROM event WHERE thread_id = $1 AND first_id <= $2), 0)
     ORDER BY first_id LIMIT $3";

pub(super) async fn after(
    connections: &Connections,
    thread: ThreadId,
    after: u64,
    limit: u32,
) -> Result<Vec<EventRow>, Error> {
    let rows = idempotent!(connections, |c| each row of sqlx::query(AFTER)
        .bind(thread.0)
        .bind(big(after))
        .bind(i64::from(limit)))?;
    if rows.is_empty() {
        threads::info(connections, thread).await?;
    }
    rows.iter().map(decode::event).collect()
}

const PRUNE: &str = "DELETE FROM event WHERE (thread_id, first_id) IN (
        SELECT e.thread_id, e.first_id FROM event e JOIN thread t ON t.id = e.thread_id
        WHERE e.at <= now() - $1 * interval '1 microsecond' AND t.status NOT IN ('busy', 'queued')
        ORDER BY e.at LIMIT $2)";

pub(super) async fn prune(
    connections: &Connections,
    kept: Duration,
    most: u32,
) -> Result<u64, Error> {
    let done = idempotent!(connections, |c| sqlx::query(PRUNE)
        .bind(micros(kept) as f64)
        .bind(i64::from(most))
        .execute(&mut *c))?;
    Ok(done.rows_affected())
}
