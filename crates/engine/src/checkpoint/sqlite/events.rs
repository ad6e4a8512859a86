//! The logs of what runs told.

use std::time::Duration;

use super::{
    super::{
        Error, EventMark, EventRow, decode,
        limits::{big, micros},
    },
    leases::now,
    refusal::check,
    threads,
};
use crate::ids::ThreadId;
use perihelion_database::sqlite::File;

/// One statement, so that those of several threads share a flush. A trigger moves the thread's count of events.
const APPEND: &str = "INSERT INTO event (thread_id, first_id, events, step, run, codec, body, at)
     SELECT id, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM thread
     WHERE id = ?1 AND fence = ?2 AND events = ?3 - 1";

/// Whether a batch is there already: ids are given once, so it is this writer's own.
const IS_THERE: &str = "SELECT t.events, EXISTS (SELECT 1 FROM event e
        WHERE e.thread_id = t.id AND e.first_id = ?2 AND e.events = ?3 AND e.run = ?4)
     FROM thread t WHERE t.id = ?1";

pub(super) async fn append(
    file: &File,
    thread: ThreadId,
    fence: u64,
    batch: &EventRow,
) -> Result<(), Error> {
    let refine = |e| Error::from(file.refine(e));
    let statement = sqlx::query(APPEND)
        .bind(thread.0)
        .bind(big(fence))
        .bind(big(batch.first))
        .bind(batch.count as i32)
        .bind(big(batch.step))
        .bind(batch.run.0)
        .bind(batch.body.codec as i16)
        .bind(&batch.body.bytes[..])
        .bind(now());
    if file.write(statement).await.map_err(refine)? > 0 {
        return Ok(());
    }
    let mut writer = file.writer().await?;
    let connection = writer.connection()?;
    check(connection, thread, fence).await?;
    let (last, is_there): (i64, bool) = sqlx::query_as(IS_THERE)
        .bind(thread.0)
        .bind(big(batch.first))
        .bind(batch.count as i32)
        .bind(batch.run.0)
        .fetch_one(connection)
        .await
        .map_err(refine)?;
    match is_there {
        true => Ok(()),
        false => Err(Error::EventGap { thread, first: batch.first, last: last as u64 }),
    }
}

pub(super) async fn mark(file: &File, thread: ThreadId) -> Result<EventMark, Error> {
    let mut reader = file.reader().await?;
    let row = sqlx::query_as("SELECT events, events_step FROM thread WHERE id = ?1")
        .bind(thread.0)
        .fetch_optional(reader.connection()?)
        .await;
    let (last, step): (i64, i64) = reader.settle(row)?.ok_or(Error::UnknownThread(thread))?;
    Ok(EventMark { last: last as u64, step: step as u64 })
}

const AFTER: &str = "SELECT first_id, events, run, step, codec, body, at FROM event
     WHERE thread_id = ?1 AND first_id + events - 1 > ?2 AND first_id >= coalesce((
        SELECT max(first_id) FROM event WHERE thread_id = ?1 AND first_id <= ?2), 0)
     ORDER BY first_id LIMIT ?3";

pub(super) async fn after(
    file: &File,
    thread: ThreadId,
    after: u64,
    limit: u32,
) -> Result<Vec<EventRow>, Error> {
    let mut reader = file.reader().await?;
    let rows = sqlx::query(AFTER)
        .bind(thread.0)
        .bind(big(after))
        .bind(i64::from(limit))
        .fetch_all(reader.connection()?)
        .await;
    let rows = reader.settle(rows)?;
    if rows.is_empty() {
        threads::info(file, thread).await?;
    }
    rows.iter().map(decode::event).collect()
}

const PRUNE: &str = "DELETE FROM event WHERE rowid IN (
        SELECT e.rowid FROM event e JOIN thread t ON t.id = e.thread_id
        WHERE e.at <= ?1 AND t.status NOT IN ('busy', 'queued')
        ORDER BY e.at LIMIT ?2)";

pub(super) async fn prune(file: &File, kept: Duration, most: u32) -> Result<u64, Error> {
    let mut writer = file.writer().await?;
    let done = sqlx::query(PRUNE)
        .bind(now().saturating_sub(micros(kept)))
        .bind(i64::from(most))
        .execute(writer.connection()?)
        .await
        .map_err(|e| file.refine(e))?;
    Ok(done.rows_affected())
}
