//! Whose traces have not arrived yet.

use async_trait::async_trait;
use chrono::DateTime;
use sqlx::{Row as _, sqlite::SqliteRow};

use super::{
    super::{Error, Outbox, PendingExport},
    SqliteStore,
};
use crate::ids::ThreadId;

/// Two statements of which either alone does no harm.
const PAID: [&str; 2] = [
    "DELETE FROM trace_debt WHERE thread_id = ?1 AND to_run <= ?2",
    "UPDATE trace_debt SET from_run = ?2 + 1 WHERE thread_id = ?1 AND from_run <= ?2",
];

#[async_trait]
impl Outbox for SqliteStore {
    async fn pending(&self, limit: u32) -> Result<Vec<PendingExport>, Error> {
        let mut reader = self.file.reader().await?;
        let rows = sqlx::query(
            "SELECT thread_id, from_run, to_run, since FROM trace_debt
             ORDER BY since, thread_id LIMIT ?1",
        )
        .bind(limit)
        .fetch_all(reader.connection()?)
        .await;
        reader.settle(rows)?.iter().map(export).collect()
    }

    async fn count(&self) -> Result<u64, Error> {
        let mut reader = self.file.reader().await?;
        let query = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM trace_debt");
        let count = query.fetch_one(reader.connection()?).await;
        Ok(reader.settle(count)?.unsigned_abs())
    }

    async fn pending_of(&self, thread: ThreadId) -> Result<Option<PendingExport>, Error> {
        let mut reader = self.file.reader().await?;
        let rows = sqlx::query(
            "SELECT thread_id, from_run, to_run, since FROM trace_debt WHERE thread_id = ?1",
        )
        .bind(thread.0)
        .fetch_all(reader.connection()?)
        .await;
        reader.settle(rows)?.first().map(export).transpose()
    }

    async fn paid(&self, thread: ThreadId, run: u32) -> Result<(), Error> {
        let mut writer = self.file.writer().await?;
        for statement in PAID {
            let query = sqlx::query(statement).bind(thread.0).bind(run);
            let done = query.execute(writer.connection()?).await;
            done.map_err(|error| self.file.refine(error))?;
        }
        Ok(())
    }
}

fn export(row: &SqliteRow) -> Result<PendingExport, Error> {
    Ok(PendingExport {
        thread: ThreadId(row.try_get("thread_id")?),
        from_run: row.try_get("from_run")?,
        to_run: row.try_get("to_run")?,
        since: DateTime::from_timestamp_micros(row.try_get("since")?).unwrap_or_default(),
    })
}
