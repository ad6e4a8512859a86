//! Whose traces have not arrived yet.

use async_trait::async_trait;
use chrono::DateTime;
use sqlx::{Row as _, sqlite::SqliteRow};

use super::{
    super::{Error, Outbox, TraceDebt},
    SqliteStore,
};
use crate::ids::ThreadId;

/// The last run that has ended: the newest one is left out while it is marked running.
macro_rules! upto {
    () => {
        "(?2 - EXISTS (SELECT 1 FROM run JOIN thread ON thread.id = run.thread_id
            WHERE run.thread_id = ?1 AND number = ?2 AND number = thread.runs AND run.status = 'running'))"
    };
}

/// Two statements of which either alone does no harm.
const PAID: [&str; 2] = [
    concat!("DELETE FROM trace_debt WHERE thread_id = ?1 AND to_run <= ", upto!()),
    concat!(
        "UPDATE trace_debt SET from_run = ",
        upto!(),
        " + 1 WHERE thread_id = ?1 AND from_run <= ",
        upto!()
    ),
];

#[async_trait]
impl Outbox for SqliteStore {
    async fn owed(&self, limit: u32) -> Result<Vec<TraceDebt>, Error> {
        let mut reader = self.file.reader().await?;
        let rows = sqlx::query(
            "SELECT thread_id, from_run, to_run, since FROM trace_debt
             ORDER BY since, thread_id LIMIT ?1",
        )
        .bind(limit)
        .fetch_all(&mut *reader)
        .await;
        reader.settle(rows)?.iter().map(debt).collect()
    }

    async fn owed_by(&self, thread: ThreadId) -> Result<Option<TraceDebt>, Error> {
        let mut reader = self.file.reader().await?;
        let rows = sqlx::query(
            "SELECT thread_id, from_run, to_run, since FROM trace_debt WHERE thread_id = ?1",
        )
        .bind(thread.0)
        .fetch_all(&mut *reader)
        .await;
        reader.settle(rows)?.first().map(debt).transpose()
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

fn debt(row: &SqliteRow) -> Result<TraceDebt, Error> {
    Ok(TraceDebt {
        thread: ThreadId(row.try_get("thread_id")?),
        from_run: row.try_get("from_run")?,
        to_run: row.try_get("to_run")?,
        since: DateTime::from_timestamp_micros(row.try_get("since")?).unwrap_or_default(),
    })
}
