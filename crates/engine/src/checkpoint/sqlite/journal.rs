//! Effects, answers and events on their way in.

use perihelion_database::{Transaction, query};
use sqlx::AssertSqlSafe;

use super::{
    super::{
        EffectRow, EffectSettlement, EffectStatus, Encoded, Error, EventRow, Fence,
        both::{OwnJournal, bind_effect, now, refusal::explain, sum_of_answer, why_not_appended},
        checksum,
        limits::big,
    },
    SqliteStore,
};
use crate::ids::InterruptId;

impl OwnJournal for SqliteStore {
    async fn record(&self, fence: Fence, effects: &[EffectRow]) -> Result<(), Error> {
        let record = query(AssertSqlSafe(recording(effects.len())));
        let record = record.bind(fence.thread.0).bind(big(fence.token));
        let bind = |query, effect| bind_effect(query, fence.thread, effect);
        if self.database.execute(&effects.iter().fold(record, bind)).await? == 0 {
            // Refused, or already there: then the first one stands.
            explain(&self.database, fence).await?;
        }
        Ok(())
    }

    async fn settle(&self, fence: Fence, end: &EffectSettlement) -> Result<(), Error> {
        let thread = fence.thread;
        let codec = end.outcome.as_ref().map(|outcome| outcome.codec as i16);
        let outcome = end.outcome.as_ref().map(|outcome| &outcome.bytes[..]);
        let settle = query(SETTLE)
            .bind(thread.0)
            .bind(big(fence.token))
            .bind(big(end.step))
            .bind(end.task as i32)
            .bind(&end.key[..])
            .bind(end.status.as_str())
            .bind(codec)
            .bind(outcome)
            .bind(end.attempt as i32)
            .bind((end.status != EffectStatus::Started).then(now))
            .bind(&checksum::outcome_at(end)[..]);
        if self.database.execute(&settle).await? == 1 {
            return Ok(());
        }
        explain(&self.database, fence).await?;
        // A repetition of the settlement that stands succeeds.
        let is_settled = query(IS_SETTLED)
            .bind(thread.0)
            .bind(big(end.step))
            .bind(end.task as i32)
            .bind(&end.key[..])
            .bind(end.status.as_str())
            .bind(codec)
            .bind(outcome);
        match self.database.fetch_short(&is_settled).await? {
            Some(_) => Ok(()),
            None => Err(Error::UnknownEffect { thread, step: end.step, task: end.task }),
        }
    }

    async fn answer(&self, interrupt: InterruptId, answer: &Encoded) -> Result<bool, Error> {
        let mut transaction = self.database.begin().await?;
        let answered = write_answer(&mut transaction, interrupt, answer).await;
        transaction.settle(answered).await
    }

    async fn append(&self, fence: Fence, batch: &EventRow) -> Result<(), Error> {
        let append = query(APPEND)
            .bind(fence.thread.0)
            .bind(big(fence.token))
            .bind(big(batch.first))
            .bind(batch.count as i32)
            .bind(big(batch.step))
            .bind(batch.run.0)
            .bind(batch.body.codec as i16)
            .bind(&batch.body.bytes[..])
            .bind(now());
        match self.database.execute(&append).await? {
            0 => why_not_appended(&self.database, fence, batch).await,
            _ => Ok(()),
        }
    }
}

/// Parameters of an effect, beside its thread.
const PARAMETERS: usize = 16;

/// Returns the statement that inserts some effects of a thread whose claim holds.
fn recording(effects: usize) -> String {
    let row = |index: usize| {
        let of_row = |column: usize| format!("${}", 3 + index * PARAMETERS + column);
        format!("({})", (0..PARAMETERS).map(of_row).collect::<Vec<_>>().join(", "))
    };
    format!(
        "INSERT INTO effect (thread_id, step, started_at, ended_at, task, number,
            attempt, request_codec, outcome_codec, kind, status, name, key, request, outcome,
            request_sum, outcome_sum)
         SELECT thread.id, effects.* FROM thread, (VALUES {}) AS effects WHERE thread.id = $1 AND thread.fence = $2
         ON CONFLICT DO NOTHING",
        (0..effects).map(row).collect::<Vec<_>>().join(", ")
    )
}

const SETTLE: &str = "UPDATE effect SET status = $6, outcome_codec = $7, outcome = $8,
        attempt = $9, ended_at = $10, outcome_sum = $11
     WHERE thread_id = $1 AND step = $3 AND task = $4 AND key = $5 AND status <> 'done'
        AND EXISTS (SELECT 1 FROM thread WHERE id = $1 AND fence = $2)";

const IS_SETTLED: &str = "SELECT 1 FROM effect
     WHERE thread_id = $1 AND step = $2 AND task = $3 AND key = $4
        AND status = 'done' AND status = $5 AND outcome_codec IS $6 AND outcome IS $7";

const ANSWER: &str = "UPDATE effect SET status = 'done', outcome_codec = $2, outcome = $3,
        ended_at = $4, outcome_sum = $5
     WHERE kind = 'interrupt' AND key = $1 AND status = 'started'";

/// Queues the thread at the top, or tells the end of its run to.
const WAKE: &str = "UPDATE thread SET woken = status = 'busy', updated_at = $2,
        status = CASE status WHEN 'interrupted' THEN 'queued' ELSE status END
     WHERE status IN ('interrupted', 'busy') AND id = (
        SELECT coalesce(asking.root_id, asking.id)
        FROM effect e JOIN thread asking ON asking.id = e.thread_id
        WHERE e.kind = 'interrupt' AND e.key = $1)";

async fn write_answer(
    transaction: &mut Transaction<'_>,
    interrupt: InterruptId,
    answer: &Encoded,
) -> Result<bool, Error> {
    let key = interrupt.0.as_bytes();
    let now = now();
    let answer = query(ANSWER)
        .bind(&key[..])
        .bind(answer.codec as i16)
        .bind(&answer.bytes[..])
        .bind(now)
        .bind(&sum_of_answer(interrupt, answer)[..]);
    if transaction.execute(&answer).await? == 0 {
        return Ok(false);
    }
    transaction.execute(&query(WAKE).bind(&key[..]).bind(now)).await?;
    Ok(true)
}

/// One statement, so that those of several threads share a flush. A trigger moves the thread's count of events.
const APPEND: &str = "INSERT INTO event (thread_id, first_id, events, step, run, codec, body, at)
     SELECT id, $3, $4, $5, $6, $7, $8, $9 FROM thread
     WHERE id = $1 AND fence = $2 AND events = $3 - 1";
