//! The journal's rows, open questions, and what unfinished steps already have.

use perihelion_database::sqlite::File;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use super::{
    super::{
        BlobRow, EffectRow, EffectSettlement, EffectStatus, Encoded, Error, OpenInterrupt,
        PendingRow, checksum,
        decode::{self, effect_columns},
        limits::{big, moment, text},
    },
    blobs,
    leases::now,
    refusal::check,
    threads,
};
use crate::ids::{InterruptId, ThreadId};

const SAVE_PENDING: &str = "INSERT INTO pending (thread_id, step, task, codec, body, checksum)
     SELECT id, ?3, ?4, ?5, ?6, ?7 FROM thread WHERE id = ?1 AND fence = ?2 AND head = ?3 - 1
     ON CONFLICT DO NOTHING";

pub(super) async fn save_pending(
    file: &File,
    thread: ThreadId,
    fence: u64,
    row: &PendingRow,
    blobs: &[BlobRow],
) -> Result<(), Error> {
    let held = (thread, fence);
    let saved = match blobs.is_empty() {
        true => file.write(pending(held, row)).await,
        false => pending_with_blobs(file.writer().await?.connection()?, held, row, blobs).await,
    };
    if saved.map_err(|e| file.refine(e))? == 0 {
        // Refused, or already there: then the first one stands.
        let place = check(file.writer().await?.connection()?, thread, fence).await?;
        if place.head + 1 != row.step {
            return Err(Error::Conflict { thread, seq: row.step, head: place.head });
        }
    }
    Ok(())
}

/// Saves a pending write and its texts, or neither.
async fn pending_with_blobs(
    connection: &mut SqliteConnection,
    held: (ThreadId, u64),
    row: &PendingRow,
    rows: &[BlobRow],
) -> Result<u64, sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let saved = pending(held, row).execute(&mut *transaction).await?.rows_affected();
    if saved > 0 {
        blobs::keep(&mut transaction, rows).await?;
    }
    transaction.commit().await?;
    Ok(saved)
}

fn pending((thread, fence): (ThreadId, u64), row: &PendingRow) -> Query<'_> {
    sqlx::query(SAVE_PENDING)
        .bind(thread.0)
        .bind(big(fence))
        .bind(big(row.step))
        .bind(row.task as i32)
        .bind(row.body.codec as i16)
        .bind(&row.body.bytes[..])
        .bind(checksum::pending(row).to_vec())
}

/// Parameters of an effect, beside its thread.
const PARAMETERS: usize = 16;

/// Returns the statement that inserts some effects of a thread whose claim holds.
fn recording(effects: usize) -> String {
    let row = |index: usize| {
        let of_row = |column: usize| format!("?{}", 3 + index * PARAMETERS + column);
        format!("({})", (0..PARAMETERS).map(of_row).collect::<Vec<_>>().join(", "))
    };
    format!(
        "INSERT INTO effect (thread_id, step, started_at, ended_at, task, number,
            attempt, request_codec, outcome_codec, kind, status, name, key, request, outcome,
            request_sum, outcome_sum)
         SELECT thread.id, effects.* FROM thread, (VALUES {}) AS effects WHERE thread.id = ?1 AND thread.fence = ?2
         ON CONFLICT DO NOTHING",
        (0..effects).map(row).collect::<Vec<_>>().join(", ")
    )
}

pub(super) async fn record(
    file: &File,
    thread: ThreadId,
    fence: u64,
    effects: &[EffectRow],
) -> Result<(), Error> {
    let query =
        sqlx::query(AssertSqlSafe(recording(effects.len()))).bind(thread.0).bind(big(fence));
    let query = effects.iter().fold(query, |query, effect| bind_effect(query, thread, effect));
    let recorded = file.write(query).await;
    if recorded.map_err(|e| file.refine(e))? == 0 {
        // Refused, or already there: then the first one stands.
        check(file.writer().await?.connection()?, thread, fence).await?;
    }
    Ok(())
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

/// Binds an effect's columns after those the statement has already.
pub(super) fn bind_effect<'q>(
    query: Query<'q>,
    thread: ThreadId,
    effect: &'q EffectRow,
) -> Query<'q> {
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
        .bind(checksum::request(thread, effect).to_vec())
        .bind(sum_of_outcome(effect))
}

fn sum_of_outcome(effect: &EffectRow) -> Vec<u8> {
    let EffectRow { key, status, attempt, outcome, .. } = effect;
    checksum::outcome(key, *status, *attempt, outcome.as_ref()).to_vec()
}

/// Sums up how an effect stands once it is settled.
fn sum_of_end(end: &EffectSettlement) -> Vec<u8> {
    let EffectSettlement { key, status, attempt, outcome, .. } = end;
    checksum::outcome(key, *status, *attempt, outcome.as_ref()).to_vec()
}

const SETTLE: &str = "UPDATE effect SET status = ?6, outcome_codec = ?7, outcome = ?8,
        attempt = ?9, ended_at = ?10, outcome_sum = ?11
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
    let codec = end.outcome.as_ref().map(|outcome| outcome.codec as i16);
    let outcome = end.outcome.as_ref().map(|outcome| &outcome.bytes[..]);
    let statement = sqlx::query(SETTLE)
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
        .bind(sum_of_end(end));
    if file.write(statement).await.map_err(|e| file.refine(e))? == 1 {
        return Ok(());
    }
    let mut writer = file.writer().await?;
    let connection = writer.connection()?;
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

const COUNTS: &str = "SELECT step, task, effects FROM effect_count
     WHERE thread_id = ?1 AND step BETWEEN ?2 AND ?3";

/// Reads the effects of the steps in a range; what was counted is read first, so that no row added meanwhile is missed.
async fn read_effects(
    file: &File,
    thread: ThreadId,
    (first, last): (i64, i64),
) -> Result<Vec<EffectRow>, Error> {
    let mut reader = file.reader().await?;
    let counted = sqlx::query(COUNTS)
        .bind(thread.0)
        .bind(first)
        .bind(last)
        .fetch_all(reader.connection()?)
        .await;
    let rows = match counted {
        Ok(counted) => sqlx::query(EFFECTS)
            .bind(thread.0)
            .bind(first)
            .bind(last)
            .fetch_all(reader.connection()?)
            .await
            .map(|rows| (counted, rows)),
        Err(error) => Err(error),
    };
    let (counted, rows) = reader.settle(rows)?;
    if rows.is_empty() {
        threads::info(file, thread).await?;
    }
    decode::effects(thread, &counted, &rows)
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
    let range = step.map_or((0, i64::MAX), |step| (big(step), big(step)));
    read_effects(file, thread, range).await
}

pub(super) async fn effects_from(
    file: &File,
    thread: ThreadId,
    step: u64,
) -> Result<Vec<EffectRow>, Error> {
    read_effects(file, thread, (big(step), i64::MAX)).await
}

const OPEN: &str = "SELECT e.* FROM effect e JOIN thread t ON t.id = e.thread_id
     WHERE (t.id = ?1 OR t.root_id = ?1) AND e.kind = 'interrupt' AND e.status = 'started'
     ORDER BY e.started_at, e.thread_id, e.step, e.task, e.number";

pub(super) async fn open_interrupts(
    file: &File,
    thread: ThreadId,
) -> Result<Vec<OpenInterrupt>, Error> {
    let mut reader = file.reader().await?;
    let rows = sqlx::query(OPEN).bind(thread.0).fetch_all(reader.connection()?).await;
    let rows = reader.settle(rows)?;
    if rows.is_empty() {
        threads::info(file, thread).await?;
    }
    rows.iter().map(decode::open_interrupt).collect()
}

/// Sums up how a question stands once it is answered; it is put once.
fn sum_of_answer(interrupt: InterruptId, answer: &Encoded) -> Vec<u8> {
    let key = interrupt.0.as_bytes();
    checksum::outcome(key, EffectStatus::Done, 1, Some(answer)).to_vec()
}

const ANSWER: &str = "UPDATE effect SET status = 'done', outcome_codec = ?2, outcome = ?3,
        ended_at = ?4, outcome_sum = ?5
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
    let refine = |e| Error::from(file.refine(e));
    let mut transaction =
        writer.connection()?.begin_with("BEGIN IMMEDIATE").await.map_err(refine)?;
    let (key, now) = (interrupt.0, now());
    let done = sqlx::query(ANSWER)
        .bind(key.as_bytes().as_slice())
        .bind(answer.codec as i16)
        .bind(&answer.bytes[..])
        .bind(now)
        .bind(sum_of_answer(interrupt, answer))
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
