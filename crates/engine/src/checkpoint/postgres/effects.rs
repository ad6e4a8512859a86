//! The journal's rows, open questions, and what unfinished steps already have.

use super::{
    super::{
        BlobRow, EffectRow, EffectSettlement, EffectStatus, Encoded, Error, OpenInterrupt,
        PendingRow, checksum,
        decode::{self, effect_columns},
        limits::big,
    },
    blobs::{Unnested, bind_blobs, kept},
    refusal::explain,
    threads,
};
use crate::ids::{InterruptId, ThreadId};
use perihelion_database::{idempotent, postgres::Connections};

// Each of the fenced statements locks the thread's row in share mode first: a claim waits for it, and
// after a claim the fence no longer matches. Tasks of one step do not wait for each other.

macro_rules! save_pending {
    ($more:expr) => {
        concat!(
            "WITH held AS (
                SELECT id FROM thread WHERE id = $1 AND fence = $2 AND head = $3 - 1 FOR SHARE
             ), saved AS (
                INSERT INTO pending (thread_id, step, task, codec, body, checksum)
                SELECT id, $3, $4, $5, $6, $7 FROM held
                ON CONFLICT (thread_id, step, task) DO NOTHING
             )",
            $more,
            " SELECT count(*) FROM held"
        )
    };
}

const SAVE_PENDING: &str = save_pending!("");
const SAVE_PENDING_AND_KEEP: &str =
    save_pending!(concat!(", kept AS (", kept!("held, ", "8", "9", "10", "11", "12"), ")"));

pub(super) async fn save_pending(
    connections: &Connections,
    thread: ThreadId,
    fence: u64,
    row: &PendingRow,
    blobs: &[BlobRow],
) -> Result<(), Error> {
    let sum = checksum::pending(row);
    let statement = if blobs.is_empty() { SAVE_PENDING } else { SAVE_PENDING_AND_KEEP };
    let query = || {
        let query = sqlx::query_scalar(statement)
            .bind(thread.0)
            .bind(big(fence))
            .bind(big(row.step))
            .bind(row.task as i32)
            .bind(row.body.codec as i16)
            .bind(&row.body.bytes[..])
            .bind(&sum[..]);
        match blobs.is_empty() {
            true => query,
            false => bind_blobs!(query, Unnested::new(blobs)),
        }
    };
    let held: i64 = idempotent!(connections, |c| query().fetch_one(&mut *c))?;
    match held {
        0 => {
            explain(connections, thread, fence, |place| {
                Err(Error::Conflict { thread, seq: row.step, head: place.head })
            })
            .await
        }
        _ => Ok(()),
    }
}

/// Sums up how an effect stands once it is settled.
fn sum_of_end(end: &EffectSettlement) -> Vec<u8> {
    let EffectSettlement { key, status, attempt, outcome, .. } = end;
    checksum::outcome(key, *status, *attempt, outcome.as_ref()).to_vec()
}

/// Counts the effects that are, or already were, settled this way, so that a repetition succeeds.
const SETTLE: &str = "WITH held AS (
        SELECT id FROM thread WHERE id = $1 AND fence = $2 FOR SHARE
     ), settled AS (
        UPDATE effect SET status = $6, outcome_codec = $7, outcome = $8, attempt = $9, outcome_sum = $10,
            ended_at = CASE WHEN $6 = 'started' THEN NULL ELSE now() END
        FROM held
        WHERE thread_id = held.id AND step = $3 AND task = $4 AND key = $5
            AND effect.status <> 'done'
        RETURNING 1
     )
     SELECT (SELECT count(*) FROM settled) + (
        SELECT count(*) FROM effect, held
        WHERE thread_id = held.id AND step = $3 AND task = $4 AND key = $5
            AND effect.status = 'done' AND effect.status = $6
            AND outcome_codec IS NOT DISTINCT FROM $7 AND outcome IS NOT DISTINCT FROM $8
     )";

pub(super) async fn settle(
    connections: &Connections,
    thread: ThreadId,
    fence: u64,
    end: &EffectSettlement,
) -> Result<(), Error> {
    let settled: i64 = idempotent!(connections, |c| sqlx::query_scalar(SETTLE)
        .bind(thread.0)
        .bind(big(fence))
        .bind(big(end.step))
        .bind(end.task as i32)
        .bind(&end.key[..])
        .bind(end.status.as_str())
        .bind(end.outcome.as_ref().map(|outcome| outcome.codec as i16))
        .bind(end.outcome.as_ref().map(|outcome| &outcome.bytes[..]))
        .bind(end.attempt as i32)
        .bind(sum_of_end(end))
        .fetch_one(&mut *c))?;
    match settled {
        0 => {
            explain(connections, thread, fence, |_| {
                Err(Error::UnknownEffect { thread, step: end.step, task: end.task })
            })
            .await
        }
        _ => Ok(()),
    }
}

const COUNTS: &str = "SELECT step, task, effects FROM effect_count
     WHERE thread_id = $1 AND step BETWEEN $2 AND $3";

/// Reads the effects of the steps in a range; what was counted is read first, so that no row added meanwhile is missed.
async fn read_effects(
    connections: &Connections,
    thread: ThreadId,
    (first, last): (i64, i64),
) -> Result<Vec<EffectRow>, Error> {
    let counted = idempotent!(connections, |c| each row of sqlx::query(COUNTS)
        .bind(thread.0)
        .bind(first)
        .bind(last))?;
    let rows = idempotent!(connections, |c| each row of sqlx::query(EFFECTS)
        .bind(thread.0)
        .bind(first)
        .bind(last))?;
    if rows.is_empty() {
        threads::info(connections, thread).await?;
    }
    decode::effects(thread, &counted, &rows)
}

const EFFECTS: &str = concat!(
    "SELECT ",
    effect_columns!(),
    " FROM effect WHERE thread_id = $1 AND step BETWEEN $2 AND $3 ORDER BY step, task, number"
);

pub(super) async fn effects(
    connections: &Connections,
    thread: ThreadId,
    step: Option<u64>,
) -> Result<Vec<EffectRow>, Error> {
    let range = step.map_or((0, i64::MAX), |step| (big(step), big(step)));
    read_effects(connections, thread, range).await
}

pub(super) async fn effects_from(
    connections: &Connections,
    thread: ThreadId,
    step: u64,
) -> Result<Vec<EffectRow>, Error> {
    read_effects(connections, thread, (big(step), i64::MAX)).await
}

const OPEN: &str = "SELECT e.* FROM effect e JOIN thread t ON t.id = e.thread_id
     WHERE (t.id = $1 OR t.root_id = $1) AND e.kind = 'interrupt' AND e.status = 'started'
     ORDER BY e.started_at, e.thread_id, e.step, e.task, e.number";

pub(super) async fn open_interrupts(
    connections: &Connections,
    thread: ThreadId,
) -> Result<Vec<OpenInterrupt>, Error> {
    let rows = idempotent!(connections, |c| each row of sqlx::query(OPEN).bind(thread.0))?;
    if rows.is_empty() {
        threads::info(connections, thread).await?;
    }
    rows.iter().map(decode::open_interrupt).collect()
}

/// Sums up how a question stands once it is answered; it is put once.
fn sum_of_answer(interrupt: InterruptId, answer: &Encoded) -> Vec<u8> {
    let key = interrupt.0.as_bytes();
    checksum::outcome(key, EffectStatus::Done, 1, Some(answer)).to_vec()
}

/// Locks the row of the thread at the top first, in the order of all other writes.
const ANSWER: &str = "WITH top AS (
        SELECT t.id, t.status FROM effect e JOIN thread asking ON asking.id = e.thread_id
            JOIN thread t ON t.id = coalesce(asking.root_id, asking.id)
        WHERE e.kind = 'interrupt' AND e.key = $1 FOR NO KEY UPDATE OF t
     ), answered AS (
        UPDATE effect SET status = 'done', outcome_codec = $2, outcome = $3, outcome_sum = $4,
            ended_at = now()
        FROM top
        WHERE effect.kind = 'interrupt' AND effect.key = $1 AND effect.status = 'started'
        RETURNING top.id
     ), woken AS (
        UPDATE thread SET woken = thread.status = 'busy', updated_at = now(),
            status = CASE thread.status WHEN 'interrupted' THEN 'queued' ELSE thread.status END
        FROM answered
        WHERE thread.id = answered.id AND thread.status IN ('interrupted', 'busy')
        RETURNING thread.id, thread.status
     )
     SELECT (SELECT count(*) FROM answered), (SELECT count(wake_thread(id)) FROM woken WHERE status = 'queued')";

/// Answers an interrupt. Not repeated after a broken connection: a second answer would look like somebody else's.
pub(super) async fn answer(
    connections: &Connections,
    interrupt: InterruptId,
    answer: &Encoded,
) -> Result<(), Error> {
    let mut connection = connections.take_tested().await?;
    let query = sqlx::query_as(ANSWER)
        .bind(interrupt.0.as_bytes().as_slice())
        .bind(answer.codec as i16)
        .bind(&answer.bytes[..])
        .bind(sum_of_answer(interrupt, answer))
        .fetch_one(&mut *connection);
    let done: Result<(i64, i64), _> = connections.brief(query).await;
    if connection.settle(done)?.0 == 1 {
        return Ok(());
    }
    let known: bool = idempotent!(connections, |c| sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM effect WHERE kind = 'interrupt' AND key = $1)"
    )
    .bind(interrupt.0.as_bytes().as_slice())
    .fetch_one(&mut *c))?;
    match known {
        true => Err(Error::InterruptClosed(interrupt)),
        false => Err(Error::UnknownInterrupt(interrupt)),
    }
}
