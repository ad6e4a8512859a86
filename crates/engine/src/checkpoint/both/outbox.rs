//! Whose traces have not arrived yet.

use async_trait::async_trait;
use perihelion_database::query;

use super::{
    super::{Error, Outbox, PendingExport},
    Backend, decode,
};
use crate::ids::ThreadId;

#[async_trait]
impl<B: Backend> Outbox for B {
    async fn pending(&self, limit: u32) -> Result<Vec<PendingExport>, Error> {
        let rows = self.database().fetch_all(&query(PENDING).bind(limit)).await?;
        rows.iter().map(decode::export).collect()
    }

    async fn count(&self) -> Result<u64, Error> {
        let row = self.database().fetch_short(&query(COUNT)).await?;
        row.as_ref().map_or(Ok(0), |row| decode::count(row, "threads"))
    }

    async fn pending_of(&self, thread: ThreadId) -> Result<Option<PendingExport>, Error> {
        let row = self.database().fetch_short(&query(PENDING_OF).bind(thread.0)).await?;
        row.as_ref().map(decode::export).transpose()
    }

    /// Two statements of which either alone does no harm; a thread has one row.
    async fn paid(&self, thread: ThreadId, run: u32) -> Result<(), Error> {
        let run = i32::try_from(run).unwrap_or(i32::MAX - 1);
        let paid = |statement| query(statement).bind(thread.0).bind(run).repeatable();
        if self.database().execute(&paid(PAID)).await? == 0 {
            self.database().execute(&paid(PAID_SOME)).await?;
        }
        Ok(())
    }
}

const PENDING: &str = "SELECT thread_id, from_run, to_run, since FROM trace_debt
     ORDER BY since, thread_id LIMIT $1";

const COUNT: &str = "SELECT count(*) AS threads FROM trace_debt";

const PENDING_OF: &str =
    "SELECT thread_id, from_run, to_run, since FROM trace_debt WHERE thread_id = $1";

const PAID: &str = "DELETE FROM trace_debt WHERE thread_id = $1 AND to_run <= $2";

const PAID_SOME: &str =
    "UPDATE trace_debt SET from_run = $2 + 1 WHERE thread_id = $1 AND from_run <= $2";
