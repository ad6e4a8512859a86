//! The event logs of runs, and the pending exports of traces.

use std::time::Duration;

use async_trait::async_trait;
use chrono::DateTime;
use perihelion_database::{Database, query};
use uuid::Uuid;

use super::super::limits::{big, micros};
use super::super::{Error, EventPosition, EventRow, Events, Fence, Outbox, PendingExport, Result};
use super::leases::explain;
use super::{Backend, decode, info, now, worded};
use crate::ids::ThreadId;

#[async_trait]
impl<B: Backend> Events for B {
    async fn append_events(&self, fence: Fence, batch: &EventRow) -> Result<()> {
        Backend::append_events(self, fence, batch).await
    }

    async fn event_position(&self, thread: ThreadId) -> Result<EventPosition> {
        let row = self.database().fetch_short(&query(MARK).bind(thread.0)).await?;
        decode::mark(&row.ok_or(Error::UnknownThread(thread))?)
    }

    async fn events_after(
        &self,
        thread: ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<EventRow>> {
        let after = query(AFTER).bind(thread.0).bind(big(after)).bind(limit);
        let rows = self.database().fetch_all(&after).await?;
        if rows.is_empty() {
            info(self.database(), thread).await?;
        }
        rows.iter().map(decode::event).collect()
    }

    async fn prune_events(&self, kept: Duration, most: u32) -> Result<u64> {
        let database = self.database();
        let before = ("{before}", "$3 - $1", "now() - $1 * interval '1 microsecond'");
        let prune = worded(database.dialect(), PRUNE, &[before])
            .binds((micros(kept), most, now()))
            .repeatable();
        Ok(database.execute(&prune).await?)
    }
}

#[async_trait]
impl<B: Backend> Outbox for B {
    async fn pending(
        &self,
        after: Option<&PendingExport>,
        limit: u32,
    ) -> Result<Vec<PendingExport>> {
        let after =
            after.map_or((DateTime::UNIX_EPOCH, Uuid::nil()), |one| (one.since, one.thread.0));
        let pending = query(PENDING).bind(limit).binds(after);
        let rows = self.database().fetch_all(&pending).await?;
        rows.iter().map(decode::export).collect()
    }

    async fn count(&self) -> Result<u64> {
        let row = self.database().fetch_short(&query(COUNT)).await?;
        Ok(row.map_or(Ok(0), |row| row.get("threads"))?)
    }

    async fn pending_of(&self, thread: ThreadId) -> Result<Option<PendingExport>> {
        let row = self.database().fetch_short(&query(PENDING_OF).bind(thread.0)).await?;
        row.as_ref().map(decode::export).transpose()
    }

    /// Two statements of which either alone does no harm; a thread has one row.
    async fn paid(&self, thread: ThreadId, run: u32) -> Result<()> {
        let run = i32::try_from(run).unwrap_or(i32::MAX - 1);
        let paid = |statement| query(statement).bind(thread.0).bind(run).repeatable();
        if self.database().execute(&paid(PAID)).await? == 0 {
            self.database().execute(&paid(PAID_SOME)).await?;
        }
        Ok(())
    }
}

const MARK: &str = "SELECT events, events_step FROM thread WHERE id = $1";

const AFTER: &str = "SELECT first_id, events, run, step, codec, body, at FROM event
     WHERE thread_id = $1 AND first_id + events - 1 > $2 AND first_id >= coalesce((
        SELECT max(first_id) FROM event WHERE thread_id = $1 AND first_id <= $2), 0)
     ORDER BY first_id LIMIT $3";

const PRUNE: &str = "DELETE FROM event WHERE (thread_id, first_id) IN (
        SELECT e.thread_id, e.first_id FROM event e JOIN thread t ON t.id = e.thread_id
        WHERE e.at <= {before} AND t.status NOT IN ('busy', 'queued')
        ORDER BY e.at LIMIT $2)";

/// Whether a batch is there already: ids are given once, so it is this writer's own.
const IS_THERE: &str = "SELECT t.events, EXISTS (SELECT 1 FROM event e
        WHERE e.thread_id = t.id AND e.first_id = $2 AND e.events = $3 AND e.run = $4) AS is_there
     FROM thread t WHERE t.id = $1";

/// Explains why a batch was not appended; no error if it is in the log.
pub(in super::super) async fn why_not_appended(
    database: &Database,
    fence: Fence,
    batch: &EventRow,
) -> Result<()> {
    explain(database, fence).await?;
    let thread = fence.thread;
    let is_there =
        query(IS_THERE).binds((thread.0, big(batch.first), batch.count as i32, batch.run.0));
    let row = database.fetch_short(&is_there).await?.ok_or(Error::UnknownThread(thread))?;
    if row.get("is_there")? {
        Ok(())
    } else {
        let last = row.get("events")?;
        Err(Error::EventGap { thread, first: batch.first, last })
    }
}

const PENDING: &str = "SELECT thread_id, from_run, to_run, since FROM trace_debt
     WHERE (since, thread_id) > ($2, $3) ORDER BY since, thread_id LIMIT $1";

const COUNT: &str = "SELECT count(*) AS threads FROM trace_debt";

const PENDING_OF: &str =
    "SELECT thread_id, from_run, to_run, since FROM trace_debt WHERE thread_id = $1";

const PAID: &str = "DELETE FROM trace_debt WHERE thread_id = $1 AND to_run <= $2";

const PAID_SOME: &str =
    "UPDATE trace_debt SET from_run = $2 + 1 WHERE thread_id = $1 AND from_run <= $2";
