//! Answers to what threads ask.

use perihelion_database::{Database, Transaction, query};

use super::super::{
    Encoded, Error,
    both::{now, sum_of_answer},
};
use crate::ids::InterruptId;

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

pub(super) async fn answer(
    database: &Database,
    interrupt: InterruptId,
    answer: &Encoded,
) -> Result<bool, Error> {
    let mut transaction = database.begin().await?;
    let answered = write(&mut transaction, interrupt, answer).await;
    transaction.settle(answered).await
}

async fn write(
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
