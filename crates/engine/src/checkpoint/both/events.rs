//! The logs of what runs told.

use std::time::Duration;

use async_trait::async_trait;
use perihelion_database::{Database, query};

use super::{
    super::{
        Error, EventPosition, EventRow, Events, Fence,
        limits::{big, micros},
    },
    Backend, decode, info, now,
    refusal::explain,
};
use crate::ids::ThreadId;

#[async_trait]
impl<B: Backend> Events for B {
    async fn append_events(&self, fence: Fence, batch: &EventRow) -> Result<(), Error> {
        self.append(fence, batch).await
    }

    async fn event_position(&self, thread: ThreadId) -> Result<EventPosition, Error> {
        let row = self.database().fetch_short(&query(MARK).bind(thread.0)).await?;
        decode::mark(&row.ok_or(Error::UnknownThread(thread))?)
    }

    async fn events_after(
        &self,
        thread: ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<EventRow>, Error> {
        let after = query(AFTER).bind(thread.0).bind(big(after)).bind(limit);
        let rows = self.database().fetch_all(&after).await?;
        if rows.is_empty() {
            info(self.database(), thread).await?;
        }
        rows.iter().map(decode::event).collect()
    }

    async fn prune_events(&self, kept: Duration, most: u32) -> Result<u64, Error> {
        let database = self.database();
        let of_sqlite = prune!("$3 - $1");
        let of_postgres = prune!("now() - $1 * interval '1 microsecond'");
        let prune = query(database.dialect().pick(of_sqlite, of_postgres))
            .bind(micros(kept))
            .bind(most)
            .bind(now())
            .repeatable();
        Ok(database.execute(&prune).await?)
    }
}

const MARK: &str = "SELECT events, events_step FROM thread WHERE id = $1";

const AFTER: &str = "SELECT first_id, events, run, step, codec, body, at FROM event
     WHERE thread_id = $1 AND first_id + events - 1 > $2 AND first_id >= coalesce((
        SELECT max(first_id) FROM event WHERE thread_id = $1 AND first_id <= $2), 0)
     ORDER BY first_id LIMIT $3";

macro_rules! prune {
    ($before:literal) => {
        concat!(
            "DELETE FROM event WHERE (thread_id, first_id) IN (
                SELECT e.thread_id, e.first_id FROM event e JOIN thread t ON t.id = e.thread_id
                WHERE e.at <= ",
            $before,
            " AND t.status NOT IN ('busy', 'queued')
                ORDER BY e.at LIMIT $2)"
        )
    };
}
use prune;

/// Whether a batch is there already: ids are given once, so it is this writer's own.
const IS_THERE: &str = "SELECT t.events, EXISTS (SELECT 1 FROM event e
        WHERE e.thread_id = t.id AND e.first_id = $2 AND e.events = $3 AND e.run = $4) AS is_there
     FROM thread t WHERE t.id = $1";

/// Says why a batch was not appended; nothing is wrong where it is there already.
pub(in super::super) async fn why_not_appended(
    database: &Database,
    fence: Fence,
    batch: &EventRow,
) -> Result<(), Error> {
    explain(database, fence).await?;
    let thread = fence.thread;
    let is_there = query(IS_THERE)
        .bind(thread.0)
        .bind(big(batch.first))
        .bind(batch.count as i32)
        .bind(batch.run.0);
    let row = database.fetch_short(&is_there).await?.ok_or(Error::UnknownThread(thread))?;
    if row.get("is_there")? {
        Ok(())
    } else {
        let last = decode::count(&row, "events")?;
        Err(Error::EventGap { thread, first: batch.first, last })
    }
}
