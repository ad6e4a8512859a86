//! Whose traces have not arrived yet.

use async_trait::async_trait;
use perihelion_database::idempotent;
use sqlx::{Row as _, postgres::PgRow};

use super::{
    super::{Error, Outbox, PendingExport},
    PostgresStore,
};
use crate::ids::ThreadId;

const PAID: &str = "WITH settled AS (
        DELETE FROM trace_debt WHERE thread_id = $1 AND to_run <= $2
     )
     UPDATE trace_debt SET from_run = $2 + 1
     WHERE thread_id = $1 AND to_run > $2 AND from_run <= $2";

#[async_trait]
impl Outbox for PostgresStore {
    async fn pending(&self, limit: u32) -> Result<Vec<PendingExport>, Error> {
        let rows = idempotent!(self.connections, |c| sqlx::query(
            "SELECT thread_id, from_run, to_run, since FROM trace_debt
             ORDER BY since, thread_id LIMIT $1"
        )
        .bind(i64::from(limit))
        .fetch_all(&mut *c))?;
        rows.iter().map(export).collect()
    }

    async fn count(&self) -> Result<u64, Error> {
        let count = idempotent!(self.connections, |c| sqlx::query_scalar::<_, i64>(
            "SELECT count(*) FROM trace_debt"
        )
        .fetch_one(&mut *c))?;
        Ok(count.unsigned_abs())
    }

    async fn pending_of(&self, thread: ThreadId) -> Result<Option<PendingExport>, Error> {
        let rows = idempotent!(self.connections, |c| sqlx::query(
            "SELECT thread_id, from_run, to_run, since FROM trace_debt WHERE thread_id = $1"
        )
        .bind(thread.0)
        .fetch_all(&mut *c))?;
        rows.first().map(export).transpose()
    }

    async fn paid(&self, thread: ThreadId, run: u32) -> Result<(), Error> {
        let run = i32::try_from(run).unwrap_or(i32::MAX - 1);
        idempotent!(self.connections, |c| sqlx::query(PAID)
            .bind(thread.0)
            .bind(run)
            .execute(&mut *c))?;
        Ok(())
    }
}

fn export(row: &PgRow) -> Result<PendingExport, Error> {
    let number = |name| Ok::<_, Error>(row.try_get::<i32, _>(name)? as u32);
    Ok(PendingExport {
        thread: ThreadId(row.try_get("thread_id")?),
        from_run: number("from_run")?,
        to_run: number("to_run")?,
        since: row.try_get("since")?,
    })
}
