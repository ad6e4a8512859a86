//! The journal's rows, open questions, and what unfinished steps already have.

use sqlx::Connection as _;

use super::{
    super::{
        EffectRow, EffectSettlement, EffectStatus, Encoded, Error, OpenInterrupt, PendingRow,
        decode::{self, effect_columns},
        limits::{big, moment, text},
    },
    file::File,
    leases::now,
    refusal::check,
    threads,
};
use crate::ids::{InterruptId, ThreadId};

const SAVE_PENDING: &str = "INSERT INTO pending (thread_id, step, task, codec, body)
     SELECT id, ?3, ?4, ?5, ?6 FROM thread WHERE id = ?1 AND fence = ?2 AND head = ?3 - 1
     ON CONFLICT DO NOTHING";

pub(super) async fn save_pending(
    file: &File,
    thread: ThreadId,
    fence: u64,
    row: &PendingRow,
) -> Result<(), Error> {
    let mut writer = file.writer().await?;
    let connection = writer.connection()?;
    let done = sqlx::query(SAVE_PENDING)
        .bind(thread.0)
        .bind(big(fence))
        .bind(big(row.step))
        .bind(row.task as i32)
        .bind(row.body.codec as i16)
        .bind(&row.body.bytes[..])
        .execute(&mut *connection)
        .await
        .map_err(|e| file.refine(e))?;
    if done.rows_affected() == 0 {
        // Refused, or already there: then the first one stands.
        let place = check(connection, thread, fence).await?;
        if place.head + 1 != row.step {
            return Err(Error::Conflict { thread, seq: row.step, head: place.head });
        }
    }
    Ok(())
}

const RECORD: &str = "INSERT INTO effect (thread_id, step, started_at, ended_at, task, number,
        attempt, request_codec, outcome_codec, kind, status, name, key, request, outcome)
     SELECT id, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16
     FROM thread WHERE id = ?1 AND fence = ?2
     ON CONFLICT DO NOTHING";

pub(super) async fn record(
    file: &File,
    thread: ThreadId,
    fence: u64,
    effect: &EffectRow,
) -> Result<(), Error> {
    let mut writer = file.writer().await?;
    let connection = writer.connection()?;
    let query = sqlx::query(RECORD).bind(thread.0).bind(big(fence));
    let done =
        bind_effect(query, effect).execute(&mut *connection).await.map_err(|e| file.refine(e))?;
    if done.rows_affected() == 0 {
        // Refused, or already there: then the first one stands.
        check(connection, thread, fence).await?;
    }
    Ok(())
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

/// Binds an effect's columns after those the statement has already.
pub(super) fn bind_effect<'q>(query: Query<'q>, effect: &'q EffectRow) -> Query<'q> {
    query
        .bind(big(effect.step))
        .bind(moment(effect.started_at).timestamp_micros())
        .bind(effect.ended_at.map(|time| moment(time).timestamp_micros()))
        .bind(effect.task as i32)
        .bind(effect.number as i32)
        .bind(effect.attempt as i32)
        .bind(effect.request.codec as i16)
        .bind(effect.outcome.as_ref().map(|outcome| outcome.codec as i16))
        .bind(effect.kind.as_str())
        .bind(effect.status.as_str())
        .bind(text(&effect.name).into_owned())
        .bind(&effect.key[..])
        .bind(&effect.request.bytes[..])
        .bind(effect.outcome.as_ref().map(|outcome| &outcome.bytes[..]))
}

const SETTLE: &str = "UPDATE effect SET status = ?6, outcome_codec = ?7, outcome = ?8,
        attempt = ?9, ended_at = ?10
     WHERE thread_id = ?1 AND step = ?3 AND task = ?4 AND key = ?5 AND status <> 'done'
        AND EXISTS (SELECT 1 FROM thread WHERE id = ?1 AND fence = ?2)";

const IS_SETTLED: &str = "SELECT EXISTS (SELECT 1 FROM effect
     WHERE thread_id = ?1 AND step = ?2 AND task = ?3 AND key = ?4
        AND status = 'done' AND status = ?5 AND outcome_codec IS ?6 AND outcome IS ?7)";

pub(super) async fn settle(
    file: &File,
    thread: ThreadId,
    fence: u64,
    end: &EffectSettlement,
) -> Result<(), Error> {
    let mut writer = file.writer().await?;
    let connection = writer.connection()?;
    let codec = end.outcome.as_ref().map(|outcome| outcome.codec as i16);
    let outcome = end.outcome.as_ref().map(|outcome| &outcome.bytes[..]);
    let done = sqlx::query(SETTLE)
        .bind(thread.0)
        .bind(big(fence))
        .bind(big(end.step))
        .bind(end.task as i32)
        .bind(&end.key[..])
        .bind(end.status.as_str())
        .bind(codec)
        .bind(outcome)
        .bind(end.attempt as i32)
        .bind((end.status != EffectStatus::Started).then(now))
        .execute(&mut *connection)
        .await
        .map_err(|e| file.refine(e))?;
    if done.rows_affected() == 1 {
        return Ok(());
    }
    check(connection, thread, fence).await?;
    // A repetition of the settlement that stands succeeds.
    let repeated: bool = sqlx::query_scalar(IS_SETTLED)
        .bind(thread.0)
        .bind(big(end.step))
        .bind(end.task as i32)
        .bind(&end.key[..])
        .bind(end.status.as_str())
        .bind(codec)
        .bind(outcome)
        .fetch_one(connection)
        .await?;
    match repeated {
        true => Ok(()),
        false => Err(Error::UnknownEffect { thread, step: end.step, task: end.task }),
    }
}

const EFFECTS: &str = concat!(
    "SELECT ",
    effect_columns!(),
    " FROM effect WHERE thread_id = ?1 AND step BETWEEN ?2 AND ?3 ORDER BY step, task, number"
);

pub(super) async fn effects(
    file: &File,
    thread: ThreadId,
    step: Option<u64>,
) -> Result<Vec<EffectRow>, Error> {
    let mut reader = file.reader().await?;
    let rows = sqlx::query(EFFECTS)
        .bind(thread.0)
        .bind(step.map_or(0, big))
        .bind(step.map_or(i64::MAX, big))
        .fetch_all(&mut *reader)
        .await;
    let rows = reader.settle(rows)?;
    if rows.is_empty() {
        threads::info(file, thread).await?;
    }
    rows.iter().map(decode::effect).collect()
}

const EFFECTS_FROM: &str = concat!(
    "SELECT ",
    effect_columns!(),
    " FROM effect WHERE thread_id = ?1 AND step >= ?2 ORDER BY step, task, number"
);

pub(super) async fn effects_from(
    file: &File,
    thread: ThreadId,
    step: u64,
) -> Result<Vec<EffectRow>, Error> {
    let mut reader = file.reader().await?;
    let rows =
        sqlx::query(EFFECTS_FROM).bind(thread.0).bind(big(step)).fetch_all(&mut *reader).await;
    let rows = reader.settle(rows)?;
    if rows.is_empty() {
        threads::info(file, thread).await?;
    }
    rows.iter().map(decode::effect).collect()
}

const OPEN: &str = "SELECT e.thread_id, e.step, e.task, e.key, e.name, e.request_codec, e.request,
        e.started_at
     FROM effect e JOIN thread t ON t.id = e.thread_id
     WHERE (t.id = ?1 OR t.root_id = ?1) AND e.kind = 'interrupt' AND e.status = 'started'
     ORDER BY e.started_at, e.thread_id, e.step, e.task, e.number";

pub(super) async fn open_interrupts(
    file: &File,
    thread: ThreadId,
) -> Result<Vec<OpenInterrupt>, Error> {
    let mut reader = file.reader().await?;
    let rows = sqlx::query(OPEN).bind(thread.0).fetch_all(&mut *reader).await;
    let rows = reader.settle(rows)?;
    if rows.is_empty() {
        threads::info(file, thread).await?;
    }
    rows.iter().map(decode::open_interrupt).collect()
}

const ANSWER: &str = "UPDATE effect SET status = 'done', outcome_codec = ?2, outcome = ?3,
        ended_at = ?4
     WHERE kind = 'interrupt' AND key = ?1 AND status = 'started'";

/// Queues the thread at the top, or tells the end of its run to.
const WAKE: &str = "UPDATE thread SET woken = status = 'busy', updated_at = ?2,
        status = CASE status WHEN 'interrupted' THEN 'queued' ELSE status END
     WHERE status IN ('interrupted', 'busy') AND id = (
        SELECT coalesce(asking.root_id, asking.id)
        FROM effect e JOIN thread asking ON asking.id = e.thread_id
        WHERE e.kind = 'interrupt' AND e.key = ?1)";

pub(super) async fn answer(
    file: &File,
    interrupt: InterruptId,
    answer: &Encoded,
) -> Result<(), Error> {
    let mut writer = file.writer().await?;
    let refine = |e| file.refine(e);
    let mut transaction =
        writer.connection()?.begin_with("BEGIN IMMEDIATE").await.map_err(refine)?;
    let (key, now) = (interrupt.0, now());
    let done = sqlx::query(ANSWER)
        .bind(key.as_bytes().as_slice())
        .bind(answer.codec as i16)
        .bind(&answer.bytes[..])
        .bind(now)
        .execute(&mut *transaction)
        .await
        .map_err(refine)?;
    if done.rows_affected() == 1 {
        sqlx::query(WAKE)
            .bind(key.as_bytes().as_slice())
            .bind(now)
            .execute(&mut *transaction)
            .await
            .map_err(refine)?;
        return transaction.commit().await.map_err(refine);
    }
    let known: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM effect WHERE kind = 'interrupt' AND key = ?1)",
    )
    .bind(interrupt.0.as_bytes().as_slice())
    .fetch_one(&mut *transaction)
    .await?;
    match known {
        true => Err(Error::InterruptClosed(interrupt)),
        false => Err(Error::UnknownInterrupt(interrupt)),
    }
}
