//! The ends of effects, and answers, which are ends of questions.

use perihelion_database::{idempotent, postgres::Connections};

use super::{
    super::{
        EffectSettlement, Encoded, Error,
        both::{refusal::explain, sum_of_answer},
        checksum,
        limits::big,
    },
    PostgresStore,
};
use crate::ids::{InterruptId, ThreadId};

/// Counts the effects that are, or already were, settled this way, so that a repetition succeeds.
///
/// The thread's row is locked in share mode first: a claim waits for it, and after a claim the fence no longer matches.
/// Tasks of one step do not wait for each other.
const SETTLE: &str = "WITH leased AS (
        SELECT id FROM thread WHERE id = $1 AND fence = $2 FOR SHARE
     ), settled AS (
        UPDATE effect SET status = $6, outcome_codec = $7, outcome = $8, attempt = $9, outcome_sum = $10,
            ended_at = CASE WHEN $6 = 'started' THEN NULL ELSE now() END
        FROM leased
        WHERE thread_id = leased.id AND step = $3 AND task = $4 AND key = $5
            AND effect.status <> 'done'
        RETURNING 1
     )
     SELECT (SELECT count(*) FROM settled) + (
        SELECT count(*) FROM effect, leased
        WHERE thread_id = leased.id AND step = $3 AND task = $4 AND key = $5
            AND effect.status = 'done' AND effect.status = $6
            AND outcome_codec IS NOT DISTINCT FROM $7 AND outcome IS NOT DISTINCT FROM $8
     )";

pub(super) async fn settle(
    store: &PostgresStore,
    thread: ThreadId,
    fence: u64,
    end: &EffectSettlement,
) -> Result<(), Error> {
    let settled: i64 = idempotent!(store.connections, |c| sqlx::query_scalar(SETTLE)
        .bind(thread.0)
        .bind(big(fence))
        .bind(big(end.step))
        .bind(end.task as i32)
        .bind(&end.key[..])
        .bind(end.status.as_str())
        .bind(end.outcome.as_ref().map(|outcome| outcome.codec as i16))
        .bind(end.outcome.as_ref().map(|outcome| &outcome.bytes[..]))
        .bind(end.attempt as i32)
        .bind(checksum::outcome_at(end).to_vec())
        .fetch_one(&mut *c))?;
    match settled {
        0 => {
            explain(&store.database, thread, fence).await?;
            Err(Error::UnknownEffect { thread, step: end.step, task: end.task })
        }
        _ => Ok(()),
    }
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
) -> Result<bool, Error> {
    let mut connection = connections.take_tested().await?;
    let query = sqlx::query_as(ANSWER)
        .bind(interrupt.0.as_bytes().as_slice())
        .bind(answer.codec as i16)
        .bind(&answer.bytes[..])
        .bind(sum_of_answer(interrupt, answer).to_vec())
        .fetch_one(&mut *connection);
    let done: Result<(i64, i64), _> = connections.brief(query).await;
    Ok(connection.settle(done)?.0 == 1)
}
