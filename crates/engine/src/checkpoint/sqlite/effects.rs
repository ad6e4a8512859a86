//! The journal's rows on their way in.

use perihelion_database::{Database, query};
use sqlx::AssertSqlSafe;

use super::super::{
    EffectRow, EffectSettlement, EffectStatus, Error,
    both::{bind_effect, now, refusal::explain},
    checksum,
    limits::big,
};
use crate::ids::ThreadId;

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

pub(super) async fn record(
    database: &Database,
    thread: ThreadId,
    fence: u64,
    effects: &[EffectRow],
) -> Result<(), Error> {
    let record = query(AssertSqlSafe(recording(effects.len()))).bind(thread.0).bind(big(fence));
    let record = effects.iter().fold(record, |query, effect| bind_effect(query, thread, effect));
    if database.execute(&record).await? == 0 {
        // Refused, or already there: then the first one stands.
        explain(database, thread, fence).await?;
    }
    Ok(())
}

const SETTLE: &str = "UPDATE effect SET status = $6, outcome_codec = $7, outcome = $8,
        attempt = $9, ended_at = $10, outcome_sum = $11
     WHERE thread_id = $1 AND step = $3 AND task = $4 AND key = $5 AND status <> 'done'
        AND EXISTS (SELECT 1 FROM thread WHERE id = $1 AND fence = $2)";

const IS_SETTLED: &str = "SELECT 1 FROM effect
     WHERE thread_id = $1 AND step = $2 AND task = $3 AND key = $4
        AND status = 'done' AND status = $5 AND outcome_codec IS $6 AND outcome IS $7";

pub(super) async fn settle(
    database: &Database,
    thread: ThreadId,
    fence: u64,
    end: &EffectSettlement,
) -> Result<(), Error> {
    let codec = end.outcome.as_ref().map(|outcome| outcome.codec as i16);
    let outcome = end.outcome.as_ref().map(|outcome| &outcome.bytes[..]);
    let settle = query(SETTLE)
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
        .bind(&checksum::outcome_at(end)[..]);
    if database.execute(&settle).await? == 1 {
        return Ok(());
    }
    explain(database, thread, fence).await?;
    // A repetition of the settlement that stands succeeds.
    let is_settled = query(IS_SETTLED)
        .bind(thread.0)
        .bind(big(end.step))
        .bind(end.task as i32)
        .bind(&end.key[..])
        .bind(end.status.as_str())
        .bind(codec)
        .bind(outcome);
    match database.fetch_short(&is_settled).await? {
        Some(_) => Ok(()),
        None => Err(Error::UnknownEffect { thread, step: end.step, task: end.task }),
    }
}
