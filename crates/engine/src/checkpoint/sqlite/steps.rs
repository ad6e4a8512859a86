//! Steps on their way in, and what a state is restored from.
//!
//! A step is one statement, which those of other threads may share a flush with; with texts beside it, one transaction.

use perihelion_database::{self as database, Transaction, query, sqlite::code};
use sqlx::{Connection as _, Sqlite, SqliteConnection, query::Query, sqlite::SqliteArguments};

use super::{
    super::{
        BlobRow, Commit, Error, Fence, Loaded, PendingRow,
        both::{
            OwnSteps,
            decode::ThreadRow,
            read,
            refusal::explain,
            steps::{newest_snapshot, pending, steps},
        },
        chain::{not_beyond, reached},
        checksum,
        limits::{big, moment},
    },
    SqliteStore,
};
use crate::clock;
use crate::ids::ThreadId;

/// SQLITE_CONSTRAINT_TRIGGER: the view's trigger found another head or another fencing token.
const STALE: &str = "1811";

impl OwnSteps for SqliteStore {
    async fn commit(&self, commit: &Commit) -> Result<(), Error> {
        match self.write(committing(commit), &commit.blobs, 0).await {
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

    async fn save_pending(
        &self,
        fence: Fence,
        row: &PendingRow,
        blobs: &[BlobRow],
    ) -> Result<(), Error> {
        if self.write(saving(fence, row), blobs, 1).await? == 0 {
            // Refused, or already there: then the first one stands.
            let head = explain(&self.database, fence).await?.head;
            if head + 1 != row.step {
                return Err(Error::Conflict { thread: fence.thread, seq: row.step, head });
            }
        }
        Ok(())
    }

    /// Reads in one transaction, so that all parts are of the same moment.
    async fn load(
        &self,
        thread: ThreadId,
        at: Option<u64>,
        since: Option<u64>,
    ) -> Result<Loaded, Error> {
        let mut transaction = self.database.begin_reading().await?;
        let loaded = read_all(&mut transaction, thread, at, since).await;
        transaction.settle(loaded).await
    }
}

impl SqliteStore {
    /// Writes a row and the texts that it brings, or neither; returns how many rows were written beside the texts.
    ///
    /// These are kept where there were at least `least` of them: a view's trigger counts none.
    async fn write(
        &self,
        statement: Query<'_, Sqlite, SqliteArguments>,
        blobs: &[BlobRow],
        least: u64,
    ) -> Result<u64, Error> {
        self.file.check_place()?;
        let written = if blobs.is_empty() {
            self.file.write(statement).await
        } else {
            write_with(self.file.writer().await?.connection()?, statement, blobs, least).await
        };
        written.map_err(|error| self.file.refine(error).into())
    }
}

async fn write_with(
    connection: &mut SqliteConnection,
    statement: Query<'_, Sqlite, SqliteArguments>,
    blobs: &[BlobRow],
    least: u64,
) -> Result<u64, sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let written = statement.execute(&mut *transaction).await?.rows_affected();
    for row in blobs.iter().filter(|_| written >= least) {
        sqlx::query(KEEP)
            .bind(row.owner.0)
            .bind(&row.hash[..])
            .bind(big(row.step))
            .bind(row.body.codec as i16)
            .bind(&row.body.bytes[..])
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(written)
}

/// Keeps a text; of one that is there already the earlier step counts.
const KEEP: &str = "INSERT INTO blob (thread_id, hash, step, codec, body)
     VALUES (?1, ?2, ?3, ?4, ?5)
     ON CONFLICT (thread_id, hash) DO UPDATE SET step = min(step, excluded.step)";

const COMMIT: &str = "INSERT INTO step_commit (thread_id, seq, run, at, schema_version, codec,
        kind, hash, frontier, delta, fence, status, clears_pending)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

fn committing(commit: &Commit) -> Query<'_, Sqlite, SqliteArguments> {
    let step = &commit.step;
    sqlx::query(COMMIT)
        .bind(commit.thread.0)
        .bind(big(step.seq))
        .bind(step.run.0)
        .bind(moment(clock::now()).timestamp_micros())
        .bind(step.schema_version as i32)
        .bind(step.delta.codec as i16)
        .bind(step.kind.as_str())
        .bind(&step.hash[..])
        .bind(&step.frontier[..])
        .bind(&step.delta.bytes[..])
        .bind(big(commit.fence))
        .bind(commit.status.as_str())
        .bind(commit.clears_pending)
}

const SAVE: &str = "INSERT INTO pending (thread_id, step, task, codec, body, checksum)
     SELECT id, ?3, ?4, ?5, ?6, ?7 FROM thread WHERE id = ?1 AND fence = ?2 AND head = ?3 - 1
     ON CONFLICT DO NOTHING";

fn saving(fence: Fence, row: &PendingRow) -> Query<'_, Sqlite, SqliteArguments> {
    sqlx::query(SAVE)
        .bind(fence.thread.0)
        .bind(big(fence.token))
        .bind(big(row.step))
        .bind(row.task as i32)
        .bind(row.body.codec as i16)
        .bind(&row.body.bytes[..])
        .bind(checksum::pending(row).to_vec())
}

const BEYOND: &str = "SELECT min(seq) AS seq FROM step WHERE thread_id = $1 AND seq > $2";

async fn read_all(
    transaction: &mut Transaction<'_>,
    thread: ThreadId,
    at: Option<u64>,
    since: Option<u64>,
) -> Result<Loaded, Error> {
    let ThreadRow { info, base } = read(transaction, thread).await?;
    let at = at.unwrap_or(info.head);
    if at > info.head || at < base {
        return Err(Error::UnknownStep { thread, seq: at, head: info.head });
    }
    let beyond = query(BEYOND).bind(thread.0).bind(big(info.head));
    if let Some(beyond) = transaction.fetch_optional(&beyond).await? {
        not_beyond(thread, beyond.get("seq")?)?;
    }
    let snapshot = match since {
        None => newest_snapshot(transaction, thread, at).await?,
        Some(_) => None,
    };
    let after = since.map(|since| since.saturating_sub(1));
    let after = after.or(snapshot.as_ref().map(|snapshot| snapshot.seq)).unwrap_or_default();
    let steps = steps(transaction, thread, after, at).await?;
    reached(thread, after, &steps, at)?;
    let pending = if at == info.head {
        pending(transaction, thread, info.head + 1).await?
    } else {
        Vec::new()
    };
    Ok(Loaded { info, snapshot, steps, pending })
}
