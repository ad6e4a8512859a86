//! Threads in Postgres, for one machine or many.
//!
//! Enter at [`PostgresStore`]; the code shared with SQLite is in [`both`](super::both), and this module has the
//! differences. Invariant: a write that needs the fencing token checks it in the same statement, under a lock on the
//! thread's row. A commit is one statement and one round trip, which it can share with commits of other threads.
//! Deliberately absent: `synchronous_commit`, which stays as the server sets it (its default loses no commit).

mod commit;
mod together;

use std::{sync::Arc, time::Duration};

use perihelion_database::postgres::{Connections, SILENCE};
use perihelion_database::{Database, idempotent, migrations, query};
use sqlx::PgConnection;

use self::commit::{Unnested, bind_blobs, kept};
use self::together::Shared as _;
use super::both::Backend;
use super::both::decode::{self, thread_columns};
use super::both::leases::{ended, explain};
use super::both::steps::line;
use super::limits::{big, text};
use super::{
    Archive, BlobRow, Commit, EventRow, Fence, Loaded, PendingRow, Result, RunEnd, StateCache,
    checksum,
};
use crate::ids::{RunId, ThreadId};

/// A store in a Postgres database, shared by any number of processes.
pub struct PostgresStore {
    connections: Arc<Connections>,
    database: Database,
    states: StateCache,
    archive: Option<Archive>,
    commits: together::Group<Commit>,
    appends: together::Group<together::Append>,
}

impl PostgresStore {
    /// Connects and migrates; one query when the database is up to date.
    ///
    /// # Errors
    /// [`Error::Database`](super::Error::Database) when the address or the server is no good, or a newer version migrated the database.
    pub async fn open(url: &str) -> Result<Self> {
        Self::open_within(url, SILENCE).await
    }

    /// Opens as [`PostgresStore::open`] does, with another bound than 10 s on how long the server may be silent on a
    /// statement that a run waits for.
    ///
    /// A connection that was silent for longer is given up; work on whole threads has multiples of it.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn open_within(url: &str, silence: Duration) -> Result<Self> {
        let connections = Arc::new(Connections::new(url, silence)?.of_all_tenants());
        migrations::run_postgres(&connections).await?;
        let commits = together::group();
        let appends = together::group();
        let states = StateCache::default();
        let database = Arc::clone(&connections).into();
        Ok(Self { database, states, connections, commits, appends, archive: None })
    }

    /// Uses the files of archived threads; without them, no thread is archived, and archived ones cannot be read.
    #[must_use]
    pub fn archiving_to(self, archive: Option<Archive>) -> Self {
        Self { archive, ..self }
    }

    /// Lends the connection that the next commit would use to statements of the caller's own.
    ///
    /// # Errors
    /// The error of `work`; a broken connection is not used again.
    pub async fn with_connection<T>(
        &self,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T> {
        let mut connection = self.connections.take().await?;
        let result = work(&mut connection).await;
        Ok(connection.settle(result)?)
    }
}

impl Backend for PostgresStore {
    fn database(&self) -> &Database {
        &self.database
    }

    fn states(&self) -> &StateCache {
        &self.states
    }

    fn archive_files(&self) -> Option<&Archive> {
        self.archive.as_ref()
    }

    async fn end_run(&self, fence: Fence, run: RunId, end: RunEnd<'_>) -> Result<()> {
        let release = query(END_RUN)
            .binds((fence.thread.0, big(fence.token), run.0, end.thread.as_str()))
            .binds((end.error.map(text), end.run.as_str(), end.finish_reason.map(text)));
        let released = self.database.fetch_short(&release).await?;
        if released.map_or(Ok(0), |row| row.get::<i64>(0))? > 0 {
            return Ok(());
        }
        let explained = explain(&self.database, fence).await?;
        // The reply to the first sending was lost, or it was given back before: what came after it stands.
        if self.database.fetch_optional(&ended(fence, run)).await?.is_some() {
            return Ok(());
        }
        Err(explained.fenced(fence))
    }

    /// Commits a step; a step with texts has a separate statement, because texts are long.
    async fn commit(&self, commit: &Commit) -> Result<()> {
        if commit.blobs.is_empty() {
            together::write(self, &self.commits, commit).await
        } else {
            commit.alone(self).await
        }
    }

    async fn save_with(&self, fence: Fence, row: &PendingRow, blobs: &[BlobRow]) -> Result<u64> {
        let sum = checksum::pending(row);
        let save = || {
            let query = sqlx::query_scalar(SAVE_PENDING_AND_KEEP)
                .bind(fence.thread.0)
                .bind(big(fence.token))
                .bind(big(row.step))
                .bind(row.task as i32)
                .bind(row.body.codec as i16)
                .bind(&row.body.bytes[..])
                .bind(&sum[..]);
            bind_blobs!(query, Unnested::new(blobs))
        };
        let token: i64 = idempotent!(self.connections, |c| save().fetch_one(&mut *c))?;
        Ok(token.unsigned_abs())
    }

    async fn load(&self, thread: ThreadId, at: Option<u64>, since: Option<u64>) -> Result<Loaded> {
        let after = since.map(|since| since.saturating_sub(1));
        let rows = query(LOAD).bind(thread.0).bind(at.map_or(i64::MAX, big)).bind(after.map(big));
        decode::loaded(thread, at, after, &self.database.fetch_all(&rows).await?)
    }

    async fn append_events(&self, fence: Fence, batch: &EventRow) -> Result<()> {
        let append = together::Append { fence, batch: batch.clone() };
        together::write(self, &self.appends, &append).await
    }
}

/// The columns of a thread, and its first step beyond the head, in a row of another part.
macro_rules! no_thread {
    () => {
        "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL"
    };
}

const END_RUN: &str = "WITH leased AS (
        UPDATE thread SET owner = NULL, lease_until = NULL, updated_at = now(), error = $5,
            status = CASE WHEN $4 = 'interrupted' AND woken THEN 'queued' ELSE $4 END
        WHERE id = $1 AND fence = $2 AND NOT EXISTS (SELECT 1 FROM run
            WHERE run.thread_id = $1 AND run.id = $3 AND run.status <> 'running')
        RETURNING id, status = 'queued' AND root_id IS NULL AS queued
     ), ended AS (
        UPDATE run SET status = $6, finish_reason = $7, ended_at = now() FROM leased
        WHERE run.thread_id = leased.id AND run.id = $3
     )
     SELECT count(*), count(wake_thread(id)) FILTER (WHERE queued) FROM leased";

/// The thread's row is locked in share mode first: a claim waits for it, and after a claim the fence no longer matches.
/// Tasks of one step do not wait for each other.
const SAVE_PENDING_AND_KEEP: &str = concat!(
    "WITH leased AS (
        SELECT id FROM thread WHERE id = $1 AND fence = $2 AND head = $3 - 1 FOR SHARE
     ), saved AS (
        INSERT INTO pending (thread_id, step, task, codec, body, checksum)
        SELECT id, $3, $4, $5, $6, $7 FROM leased
        ON CONFLICT (thread_id, step, task) DO NOTHING
     ), kept AS (",
    kept!("leased, ", "8", "9", "10", "11", "12"),
    ") SELECT count(*) FROM leased"
);

/// The parts of [`decode::loaded`] in one consistent read. Why `LATERAL` and `OFFSET`: see `line`.
const LOAD: &str = concat!(
    line!(postgres),
    ", newest AS (
        SELECT s.* FROM line CROSS JOIN LATERAL (
            SELECT * FROM snapshot WHERE $3::bigint IS NULL AND thread_id = line.id AND seq <= line.upto
            ORDER BY seq DESC LIMIT 1
        ) s ORDER BY s.seq DESC LIMIT 1
     )
     SELECT 3::bigint AS part, NULL::bigint AS seq, NULL::integer AS schema_version, NULL::smallint AS codec,
        NULL::bytea AS body, NULL::bytea AS checksum, NULL::smallint AS blobs_codec, NULL::bytea AS blobs, NULL::uuid AS run,
        NULL::timestamptz AS at, NULL::text AS kind, NULL::bytea AS hash, NULL::bytea AS frontier, NULL::integer AS task,
        (SELECT min(seq) FROM step WHERE thread_id = thread.id AND seq > head) AS beyond, ",
    thread_columns!(),
    " FROM thread WHERE id = $1
     UNION ALL
     SELECT 0, seq, schema_version, codec, state, checksum, blobs_codec, blobs, NULL, NULL, NULL, NULL, NULL, NULL, ",
    no_thread!(),
    " FROM newest
     UNION ALL
     SELECT 1, s.seq, s.schema_version, s.codec, s.delta, NULL, NULL, NULL, s.run, s.at, s.kind, s.hash, s.frontier, NULL, ",
    no_thread!(),
    " FROM line CROSS JOIN LATERAL (
        SELECT * FROM step WHERE thread_id = line.id AND seq <= line.upto
            AND seq > coalesce($3, (SELECT seq FROM newest), 0) OFFSET 0
     ) s
     UNION ALL
     SELECT 2, p.step, NULL, p.codec, p.body, p.checksum, NULL, NULL, NULL, NULL, NULL, NULL, NULL, p.task, ",
    no_thread!(),
    " FROM pending p JOIN thread t ON t.id = p.thread_id
     WHERE t.id = $1 AND p.step = t.head + 1 AND t.head <= $2"
);
