//! Whose traces have not arrived yet.

use async_trait::async_trait;
use sqlx::{Row as _, postgres::PgRow};

use super::{
    super::{Error, Outbox, TraceDebt},
    PostgresStore,
    connections::idempotent,
};
use crate::ids::ThreadId;

/// The newest run is left out while it is marked running.
const PAID: &str = "WITH ended AS (
        SELECT $2 - count(*)::integer AS upto FROM run JOIN thread ON thread.id = run.thread_id
        WHERE run.thread_id = $1 AND number = $2 AND number = thread.runs AND run.status = 'running'
     ), settled AS (
        DELETE FROM trace_debt USING ended WHERE thread_id = $1 AND to_run <= upto
     )
     UPDATE trace_debt SET from_run = upto + 1 FROM ended
     WHERE thread_id = $1 AND to_run > upto AND from_run <= upto";

#[async_trait]
impl Outbox for PostgresStore {
    async fn owed(&self, limit: u32) -> Result<Vec<TraceDebt>, Error> {
        let rows = idempotent!(self.connections, |c| sqlx::query(
            "SELECT thread_id, from_run, to_run, since FROM trace_debt
             ORDER BY since, thread_id LIMIT $1"
        )
        .bind(i64::from(limit))
        .fetch_all(&mut *c))?;
        rows.iter().map(debt).collect()
    }

    async fn owed_by(&self, thread: ThreadId) -> Result<Option<TraceDebt>, Error> {
        let rows = idempotent!(self.connections, |c| sqlx::query(
            "SELECT thread_id, from_run, to_run, since FROM trace_debt WHERE thread_id = $1"
        )
        .bind(thread.0)
        .fetch_all(&mut *c))?;
        rows.first().map(debt).transpose()
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

fn debt(row: &PgRow) -> Result<TraceDebt, Error> {
    let number = |name| Ok::<_, Error>(row.try_get::<i32, _>(name)? as u32);
    Ok(TraceDebt {
        thread: ThreadId(row.try_get("thread_id")?),
        from_run: number("from_run")?,
        to_run: number("to_run")?,
        since: row.try_get("since")?,
    })
}
