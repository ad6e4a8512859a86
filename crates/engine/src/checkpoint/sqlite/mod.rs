//! Threads in one SQLite file, the default for one machine.
//!
//! Enter at [`SqliteStore`]; the code shared with Postgres is in [`both`](super::both), and this module has the
//! differences. Invariant: one connection writes, every write is one transaction that checks the fencing token, and it
//! is on disk when the call returns (write-ahead log, `synchronous = FULL`). Deliberately absent: a lock between
//! processes; SQLite has one, and a writer waits for it.

use std::sync::Arc;

use perihelion_database::address::path_of;
use perihelion_database::sqlite::{Deleted, File, code};
use perihelion_database::{self as database, Database, Query, migrations, query};
use sqlx::SqliteConnection;

use super::both::decode::{self, snapshot_columns, step_columns, thread_columns};
use super::both::leases::explain;
use super::both::steps::{line, saving};
use super::both::{Backend, now, why_not_appended};
use super::limits::{big, text};
use super::{
    Archive, BlobRow, Commit, Error, EventRow, Fence, Loaded, PendingRow, Result, RunEnd,
    StateCache,
};
use crate::ids::{RunId, ThreadId};

/// A store in one SQLite file, shared by the processes of one machine.
pub struct SqliteStore {
    file: Arc<File>,
    database: Database,
    states: StateCache,
    archive: Option<Archive>,
}

impl SqliteStore {
    /// Opens a file, named as `sqlite:PATH` or as a bare path, and migrates it.
    ///
    /// # Errors
    /// [`Error::Database`] when the file cannot be opened, is not one of ours, or a newer version migrated it.
    pub async fn open(url_or_path: &str) -> Result<Self> {
        let path = path_of(url_or_path)?;
        let file = Arc::new(File::open(&path, Deleted::Left).await?);
        migrations::run_sqlite(&file).await?;
        Ok(Self {
            database: Arc::clone(&file).into(),
            file,
            states: StateCache::default(),
            archive: None,
        })
    }

    /// Uses the files of archived threads; without them, no thread is archived, and archived ones cannot be read.
    #[must_use]
    pub fn archiving_to(self, archive: Option<Archive>) -> Self {
        Self { archive, ..self }
    }

    /// Lends the writing connection to statements of the caller's own; commits wait until it is back.
    ///
    /// # Errors
    /// Whatever `work` returns.
    pub async fn with_connection<T>(
        &self,
        work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T> {
        let mut writer = self.file.writer().await?;
        Ok(work(writer.connection()?).await.map_err(|error| self.file.refine(error))?)
    }

    /// Writes a row and its texts, or neither; returns how many rows were written without the texts.
    ///
    /// The texts are stored if at least `least` rows were written: the trigger of a view counts none. A row without
    /// texts is one statement, which can share a flush with statements of other threads.
    async fn write(&self, row: &Query, blobs: &[BlobRow], least: u64) -> Result<u64> {
        if blobs.is_empty() {
            return Ok(self.database.execute(row).await?);
        }
        let mut transaction = self.database.begin().await?;
        let written = transaction.execute(row).await?;
        for row in blobs.iter().filter(|_| written >= least) {
            let keep = query(KEEP)
                .binds((row.owner.0, &row.hash[..], big(row.step), row.body.codec as i16))
                .bind(&row.body.bytes[..]);
            transaction.execute(&keep).await?;
        }
        transaction.commit().await?;
        Ok(written)
    }
}

/// SQLITE_CONSTRAINT_TRIGGER: the view's trigger found another head or another fencing token.
const STALE: &str = "1811";

impl Backend for SqliteStore {
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
            .several()
            .binds((fence.thread.0, end.thread.as_str(), end.error.map(text), now()))
            .binds((big(fence.token), run.0, end.run.as_str(), end.finish_reason.map(text)));
        match self.database.execute_returning(&release).await? {
            Some(_) => Ok(()),
            // Later changes of the thread stay.
            None => explain(&self.database, fence).await.map(|_| ()),
        }
    }

    async fn commit(&self, commit: &Commit) -> Result<()> {
        match self.write(&committing(commit), &commit.blobs, 0).await {
            Ok(_) => Ok(()),
            Err(Error::Database(database::Error::Failed(error)))
                if code(&error).as_deref() == Some(STALE) =>
            {
                let Commit { thread, fence, .. } = *commit;
                let place = explain(&self.database, Fence::new(thread, fence)).await?;
                Err(Error::Conflict { thread, seq: commit.step.seq, head: place.head })
            }
            Err(error) => Err(error),
        }
    }

    async fn save_with(&self, fence: Fence, row: &PendingRow, blobs: &[BlobRow]) -> Result<u64> {
        self.write(&saving(self.database.dialect(), fence, row), blobs, 1).await
    }

    async fn load(&self, thread: ThreadId, at: Option<u64>, since: Option<u64>) -> Result<Loaded> {
        let after = since.map(|since| since.saturating_sub(1));
        let rows = query(LOAD).several().bind(thread.0).bind(at.map_or(i64::MAX, big));
        let rows = self.database.fetch_all(&rows.bind(after.map(big))).await?;
        decode::loaded(thread, at, after, &rows)
    }

    async fn append_events(&self, fence: Fence, batch: &EventRow) -> Result<()> {
        let append = query(APPEND)
            .binds((fence.thread.0, big(fence.token), big(batch.first), batch.count as i32))
            .binds((big(batch.step), batch.run.0, batch.body.codec as i16, &batch.body.bytes[..]))
            .bind(now());
        match self.database.execute(&append).await? {
            0 => why_not_appended(&self.database, fence, batch).await,
            _ => Ok(()),
        }
    }
}

const END_RUN: &str = "UPDATE thread SET
        status = CASE WHEN $2 = 'interrupted' AND woken THEN 'queued' ELSE $2 END, error = $3, owner = NULL, lease_until = NULL,
        updated_at = $4
     WHERE id = $1 AND fence = $5 AND NOT EXISTS
        (SELECT 1 FROM run WHERE thread_id = $1 AND run.id = $6 AND run.status <> 'running')
     RETURNING 1;
     UPDATE run SET status = $7, ended_at = $4, finish_reason = $8
     WHERE thread_id = $1 AND id = $6 AND status = 'running'
        AND EXISTS (SELECT 1 FROM thread WHERE thread.id = $1 AND fence = $5)";

/// Stores a text; for a text that exists, the earlier step counts.
const KEEP: &str = "INSERT INTO blob (thread_id, hash, step, codec, body)
     VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (thread_id, hash) DO UPDATE SET step = min(step, excluded.step)";

const COMMIT: &str = "INSERT INTO step_commit (thread_id, seq, run, at, schema_version, codec,
        kind, hash, frontier, delta, fence, status, clears_pending)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";

fn committing(commit: &Commit) -> Query {
    let step = &commit.step;
    query(COMMIT)
        .binds((commit.thread.0, big(step.seq), step.run.0, now(), step.schema_version as i32))
        .binds((step.delta.codec as i16, step.kind.as_str(), &step.hash[..], &step.frontier[..]))
        .binds((&step.delta.bytes[..], big(commit.fence), commit.status.as_str()))
        .bind(commit.clears_pending)
}

/// The parts of [`decode::loaded`], in one transaction, so that all are of the same moment.
const LOAD: &str = concat!(
    "BEGIN;
     SELECT 3 AS part, (SELECT min(seq) FROM step WHERE thread_id = thread.id AND seq > head) AS beyond, ",
    thread_columns!(),
    " FROM thread WHERE id = $1; ",
    line!(),
    " SELECT 0 AS part, ",
    snapshot_columns!(),
    " FROM line CROSS JOIN snapshot s WHERE $3 IS NULL AND s.thread_id = line.id AND s.seq =
        (SELECT max(seq) FROM snapshot WHERE thread_id = line.id AND seq <= line.upto)
     ORDER BY s.seq DESC LIMIT 1; ",
    line!(),
    " SELECT 1 AS part, ",
    step_columns!(),
    " FROM line CROSS JOIN step WHERE step.thread_id = line.id AND seq <= line.upto
        AND seq > coalesce($3, (SELECT max((SELECT max(seq) FROM snapshot
            WHERE thread_id = line.id AND seq <= line.upto)) FROM line), 0);
     SELECT 2 AS part, p.step AS seq, p.task, p.codec, p.body, p.checksum
     FROM thread t CROSS JOIN pending p
     WHERE t.id = $1 AND t.head <= $2 AND p.thread_id = t.id AND p.step = t.head + 1;
     COMMIT"
);

/// One statement, so that statements of several threads share a flush. A trigger moves the thread's count of events.
const APPEND: &str = "INSERT INTO event (thread_id, first_id, events, step, run, codec, body, at)
     SELECT id, $3, $4, $5, $6, $7, $8, $9 FROM thread
     WHERE id = $1 AND fence = $2 AND events = $3 - 1";
