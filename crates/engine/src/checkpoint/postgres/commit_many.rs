//! The steps of several threads in one statement, while many commit at the same time.

use std::collections::HashSet;

use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::super::{Commit, Error, limits::big};
use super::{
    PostgresStore, commit,
    together::{Shared, column},
};
use crate::ids::ThreadId;

const COMMIT_MANY: &str = "WITH input AS (
        SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::bigint[], $5::uuid[], $6::int[],
            $7::smallint[], $8::text[], $9::bytea[], $10::bytea[], $11::bytea[], $12::bool[])
        AS t (id, seq, status, fence, run, schema_version, codec, kind, hash, frontier, delta, clears)
     ), free AS (
        SELECT thread.id FROM thread JOIN input USING (id)
        WHERE thread.head = input.seq - 1 AND thread.fence = input.fence
        FOR NO KEY UPDATE OF thread SKIP LOCKED
     ), moved AS (
        UPDATE thread SET head = input.seq, status = input.status, updated_at = now()
        FROM free JOIN input USING (id)
        WHERE thread.id = free.id AND thread.head = input.seq - 1 AND thread.fence = input.fence
        RETURNING thread.id
     ), cleared AS (
        DELETE FROM pending USING moved JOIN input USING (id)
        WHERE input.clears AND pending.thread_id = moved.id AND pending.step <= input.seq
     )
     INSERT INTO step
        (thread_id, run, seq, schema_version, codec, kind, hash, frontier, delta)
     SELECT id, run, seq, schema_version, codec, kind, hash, frontier, delta
     FROM moved JOIN input USING (id)
     RETURNING thread_id";

impl Shared for Commit {
    fn thread(&self) -> ThreadId {
        self.thread
    }

    async fn alone(&self, store: &PostgresStore) -> Result<(), Error> {
        commit::commit(&store.connections, self).await
    }

    async fn recover(&self, store: &PostgresStore, error: sqlx::Error) -> Result<(), Error> {
        commit::recover(&store.connections, self, error).await
    }

    async fn many(
        connection: &mut PgConnection,
        commits: &[&Self],
    ) -> Result<HashSet<ThreadId>, sqlx::Error> {
        let rows = sqlx::query(COMMIT_MANY)
            .bind(column(commits, |commit| commit.thread.0))
            .bind(column(commits, |commit| big(commit.step.seq)))
            .bind(column(commits, |commit| commit.status.as_str()))
            .bind(column(commits, |commit| big(commit.fence)))
            .bind(column(commits, |commit| commit.step.run.0))
            .bind(column(commits, |commit| commit.step.schema_version as i32))
            .bind(column(commits, |commit| commit.step.delta.codec as i16))
            .bind(column(commits, |commit| commit.step.kind.as_str()))
            .bind(column(commits, |commit| &commit.step.hash[..]))
            .bind(column(commits, |commit| &commit.step.frontier[..]))
            .bind(column(commits, |commit| &commit.step.delta.bytes[..]))
            .bind(column(commits, |commit| commit.clears_pending))
            .fetch_all(connection)
            .await?;
        rows.iter().map(|row| row.try_get::<Uuid, _>(0).map(ThreadId)).collect()
    }
}
