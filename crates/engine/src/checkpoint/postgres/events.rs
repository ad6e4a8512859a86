//! The logs of what runs told.

use std::collections::HashSet;

use perihelion_database::idempotent;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::{
    super::{Error, EventRow, Fence, both::why_not_appended, limits::big},
    PostgresStore,
    together::{Shared, column},
};
use crate::ids::ThreadId;

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

/// A batch on its way to its thread's log.
#[derive(Clone)]
pub(super) struct Append {
    pub(super) fence: Fence,
    pub(super) batch: EventRow,
}

impl Shared for Append {
    fn thread(&self) -> ThreadId {
        self.fence.thread
    }

    async fn alone(&self, store: &PostgresStore) -> Result<(), Error> {
        let Self { fence, batch } = self;
        let token: i64 = idempotent!(store.connections, |c| sqlx::query_scalar(APPEND)
            .bind(fence.thread.0)
            .bind(big(fence.token))
            .bind(big(batch.first))
            .bind(batch.count as i32)
            .bind(big(batch.step))
            .bind(batch.run.0)
            .bind(batch.body.codec as i16)
            .bind(&batch.body.bytes[..])
            .fetch_one(&mut *c))?;
        if token > 0 {
            return Ok(());
        }
        why_not_appended(&store.database, *fence, batch).await
    }

    /// A batch that is there is known by its ids and its run.
    async fn recover(&self, store: &PostgresStore, _: sqlx::Error) -> Result<(), Error> {
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
