//! The journal: the effects of tasks, and their outcomes.

use std::time::Duration;

use async_trait::async_trait;
use backon::{BackoffBuilder as _, ExponentialBuilder};
use perihelion_database::{self as database, Database, Dialect, Query, query};
use sqlx::AssertSqlSafe;

use super::super::limits::{big, moment, text};
use super::super::{
    EffectRow, EffectSettlement, EffectStatus, Effects, Encoded, Error, Fence, OpenInterrupt,
    Questions, Result, checksum,
};
use super::decode::{self, effect_columns};
use super::leases::explain;
use super::{Backend, info, now, present, with_rows};
use crate::clock;
use crate::ids::{InterruptId, ThreadId};

#[async_trait]
impl<B: Backend> Effects for B {
    async fn record_effects(&self, fence: Fence, effects: &[EffectRow]) -> Result<()> {
        let database = self.database();
        let record = query(AssertSqlSafe(recording(database.dialect(), effects.len())));
        let record = record.bind(fence.thread.0).bind(big(fence.token));
        let bind = |query, effect| bind_effect(query, fence.thread, effect);
        let record = effects.iter().fold(record, bind).repeatable();
        let write = || async {
            if database.execute(&record).await? == 0 {
                // Refused, or already there: then the first one stands.
                explain(database, fence).await?;
            }
            Ok(())
        };
        retry(effects.iter().any(|effect| effect.outcome.is_some()), write).await
    }

    async fn settle_effect(&self, fence: Fence, end: &EffectSettlement) -> Result<()> {
        retry(end.outcome.is_some(), || settle_once(self.database(), fence, end)).await
    }

    async fn effects(&self, thread: ThreadId, step: Option<u64>) -> Result<Vec<EffectRow>> {
        let range = step.map_or(ALL, |step| (big(step), big(step)));
        with_rows(self, || read(self.database(), thread, range)).await
    }

    async fn effects_from(&self, thread: ThreadId, step: u64) -> Result<Vec<EffectRow>> {
        with_rows(self, || read(self.database(), thread, (big(step), i64::MAX))).await
    }
}

#[async_trait]
impl<B: Backend> Questions for B {
    async fn open_interrupts(&self, thread: ThreadId) -> Result<Vec<OpenInterrupt>> {
        let rows = self.database().fetch_all(&query(OPEN).bind(thread.0)).await?;
        if rows.is_empty() {
            info(self.database(), thread).await?;
        }
        rows.iter().map(decode::open_interrupt).collect()
    }

    async fn asked_below(&self, interrupt: InterruptId) -> Result<Option<ThreadId>> {
        let asked = query(ASKED_BELOW).bind(&interrupt.0.as_bytes()[..]);
        let row = self.database().fetch_short(&asked).await?;
        Ok(row.map(|row| row.get(0)).transpose()?.map(ThreadId))
    }

    async fn answer(&self, interrupt: InterruptId, answer: &Encoded) -> Result<()> {
        let sum = checksum::outcome(interrupt.0.as_bytes(), EffectStatus::Done, 1, Some(answer));
        // Not repeated after a broken connection: a second answer would look like the answer of another client.
        let set = query(self.database().dialect().pick(ANSWER_ON_SQLITE, ANSWER_ON_POSTGRES))
            .several()
            .binds((&interrupt.0.as_bytes()[..], answer.codec as i16, &answer.bytes[..]))
            .binds((&sum[..], now()));
        let answered = self.database().execute_returning(&set).await?;
        if answered.map_or(Ok(0), |row| row.get::<i64>(0))? == 1 {
            return Ok(());
        }
        let known = query(KNOWN).bind(&interrupt.0.as_bytes()[..]);
        match self.database().fetch_short(&known).await? {
            Some(_) => Err(Error::InterruptClosed(interrupt)),
            None => Err(Error::UnknownInterrupt(interrupt)),
        }
    }
}

async fn settle_once(database: &Database, fence: Fence, end: &EffectSettlement) -> Result<()> {
    let thread = fence.thread;
    let (codec, outcome) = Encoded::columns(end.outcome.as_ref());
    let settle = query(database.dialect().pick(settle!("", "$11"), settle!(" FOR SHARE", "now()")))
        .binds((thread.0, big(fence.token), big(end.step), end.task as i32, &end.key[..]))
        .binds((end.status.as_str(), codec, outcome, end.attempt as i32))
        .binds((&checksum::outcome_at(end)[..], now()))
        .repeatable();
    if database.execute(&settle).await? == 1 {
        return Ok(());
    }
    explain(database, fence).await?;
    // A repetition of the settlement that stands succeeds.
    let is_settled = query(IS_SETTLED)
        .binds((thread.0, big(end.step), end.task as i32, &end.key[..], end.status.as_str(), codec))
        .bind(outcome);
    match database.fetch_short(&is_settled).await? {
        Some(_) => Ok(()),
        None => Err(Error::UnknownEffect { thread, step: end.step, task: end.task }),
    }
}

// Postgres locks the thread's row in share mode first: a claim waits for it, and after a claim the fence no longer
// matches. Tasks of one step do not wait for each other.

macro_rules! settle {
    ($lock:literal, $now:literal) => {
        concat!(
            "WITH leased AS (SELECT id FROM thread WHERE id = $1 AND fence = $2",
            $lock,
            ") UPDATE effect SET status = $6, outcome_codec = $7, outcome = $8, attempt = $9,
                outcome_sum = $10, ended_at = CASE WHEN $6 <> 'started' THEN ",
            $now,
            " END FROM leased
             WHERE thread_id = leased.id AND step = $3 AND task = $4 AND key = $5
                AND effect.status <> 'done'"
        )
    };
}
use settle;

const IS_SETTLED: &str = "SELECT 1 AS one FROM effect
     WHERE thread_id = $1 AND step = $2 AND task = $3 AND key = $4 AND status = 'done'
        AND status = $5 AND outcome_codec IS NOT DISTINCT FROM $6
        AND outcome IS NOT DISTINCT FROM $7";

/// Parameters of an effect, without its thread.
const PARAMETERS: usize = 16;

/// Returns the statement that inserts some effects of a thread whose claim holds; SQLite counts them by a trigger.
fn recording(dialect: Dialect, effects: usize) -> String {
    const COLUMNS: &str = effect_columns!();
    let rows = places(3, effects, PARAMETERS);
    match dialect {
        Dialect::Sqlite => format!(
            "INSERT INTO effect (thread_id, {COLUMNS})
             SELECT thread.id, e.* FROM thread, (VALUES {rows}) AS e
             WHERE thread.id = $1 AND thread.fence = $2 ON CONFLICT DO NOTHING"
        ),
        Dialect::Postgres => format!(
            "WITH leased AS (SELECT id FROM thread WHERE id = $1 AND fence = $2 FOR SHARE), recorded AS (
                INSERT INTO effect (thread_id, {COLUMNS})
                SELECT leased.id, e.* FROM leased, (VALUES {rows}) AS e
                ON CONFLICT DO NOTHING RETURNING thread_id, step, task
             )
             INSERT INTO effect_count (thread_id, step, task, effects)
             SELECT thread_id, step, task, count(*) FROM recorded GROUP BY thread_id, step, task
             ON CONFLICT (thread_id, step, task)
                DO UPDATE SET effects = effect_count.effects + excluded.effects"
        ),
    }
}

/// Writes the placeholders of rows, from a number on: `($3, $4), ($5, $6)`.
pub(super) fn places(first: usize, rows: usize, columns: usize) -> String {
    let row = |row: usize| {
        let place = |column: usize| format!("${}", first + row * columns + column);
        format!("({})", (0..columns).map(place).collect::<Vec<_>>().join(", "))
    };
    (0..rows).map(row).collect::<Vec<_>>().join(", ")
}

/// Steps from the first to the last one.
type Range = (i64, i64);

pub(super) const ALL: Range = (0, i64::MAX);

const COUNTS: &str = "SELECT step, task, effects FROM effect_count
     WHERE thread_id = $1 AND step BETWEEN $2 AND $3";

const EFFECTS: &str = concat!(
    "SELECT ",
    effect_columns!(),
    " FROM effect WHERE thread_id = $1 AND step BETWEEN $2 AND $3 ORDER BY step, task, number"
);

/// Reads the number of effects of each task; it must run first, so that a row added later is not missed.
pub(super) fn counts(thread: ThreadId, (first, last): Range) -> Query {
    query(COUNTS).bind(thread.0).bind(first).bind(last)
}

pub(super) fn effects(thread: ThreadId, (first, last): Range) -> Query {
    query(EFFECTS).bind(thread.0).bind(first).bind(last)
}

async fn read(database: &Database, thread: ThreadId, range: Range) -> Result<Vec<EffectRow>> {
    let counted = database.fetch_all(&counts(thread, range)).await?;
    let rows = database.fetch_all(&effects(thread, range)).await?;
    if rows.is_empty() {
        present(database, thread).await?;
    }
    decode::effects(thread, &counted, &rows)
}

/// Binds an effect's columns after the columns that the statement has, in the order of [`effect_columns`].
pub(super) fn bind_effect(query: Query, thread: ThreadId, effect: &EffectRow) -> Query {
    let (codec, outcome) = Encoded::columns(effect.outcome.as_ref());
    query
        .binds((big(effect.step), moment(effect.started_at), effect.ended_at.map(moment)))
        .binds((effect.task as i32, effect.number as i32, effect.attempt as i32))
        .binds((effect.request.codec as i16, codec, effect.kind.as_str(), effect.status.as_str()))
        .binds((text(&effect.name), &effect.key[..], &effect.request.bytes[..], outcome))
        .binds((&checksum::request(thread, effect)[..], &checksum::outcome_of(effect)[..]))
}

const OPEN: &str = "SELECT e.* FROM effect e JOIN thread t ON t.id = e.thread_id
     WHERE (t.id = $1 OR t.root_id = $1) AND e.kind = 'interrupt' AND e.status = 'started'
     ORDER BY e.started_at, e.thread_id, e.step, e.task, e.number";

const ASKED_BELOW: &str =
    "SELECT COALESCE(t.root_id, t.id) FROM effect e JOIN thread t ON t.id = e.thread_id
     WHERE e.kind = 'interrupt' AND e.key = $1 AND e.status = 'started'";

const KNOWN: &str = "SELECT 1 FROM effect WHERE kind = 'interrupt' AND key = $1";

/// Locks the row of the thread at the top first, in the order of all other writes.
const ANSWER_ON_POSTGRES: &str = "WITH top AS (
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

/// Queues the thread at the top too, or marks it for the end of its run.
const ANSWER_ON_SQLITE: &str =
    "UPDATE effect SET status = 'done', outcome_codec = $2, outcome = $3,
        outcome_sum = $4, ended_at = $5
     WHERE kind = 'interrupt' AND key = $1 AND status = 'started' RETURNING 1;
     UPDATE thread SET woken = status = 'busy', updated_at = $5,
        status = CASE status WHEN 'interrupted' THEN 'queued' ELSE status END
     WHERE changes() > 0 AND status IN ('interrupted', 'busy') AND id = (
        SELECT coalesce(asking.root_id, asking.id)
        FROM effect e JOIN thread asking ON asking.id = e.thread_id
        WHERE e.kind = 'interrupt' AND e.key = $1)";

/// Waits for a database that is away: somewhat longer than a lease, after which the thread may be another's.
const WAITS: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(250))
    .with_max_delay(Duration::from_secs(4))
    .with_total_delay(Some(Duration::from_secs(20)))
    .without_max_times();

/// Writes to a database; the outcome of an effect is offered again for a while when the database is away.
///
/// This is the only copy: without it, a call would be paid again, or a person asked about its outcome.
async fn retry<F>(is_outcome: bool, write: impl Fn() -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let mut waits = WAITS.build();
    loop {
        match write().await {
            Err(error) if is_outcome && is_away(&error) => match waits.next() {
                Some(wait) => {
                    tracing::debug!(%error, "an outcome waits until the database is available");
                    clock::sleep(wait).await;
                }
                None => return Err(error),
            },
            written => return written,
        }
    }
}

/// Distinguishes a database that will recover from one that needs free space.
fn is_away(error: &Error) -> bool {
    error.is_passing() && !matches!(error, Error::Database(database::Error::Full { .. }))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::ids::ThreadId;

    async fn written(is_outcome: bool, failures: u32, error: fn() -> Error) -> (bool, u32) {
        let asked = Cell::new(0);
        let write = || {
            asked.set(asked.get() + 1);
            let result = if asked.get() <= failures { Err(error()) } else { Ok(()) };
            async { result }
        };
        (retry(is_outcome, write).await.is_ok(), asked.get())
    }

    /// X2
    #[tokio::test]
    async fn an_outcome_waits_for_an_unavailable_database_and_other_work_does_not() {
        let away = || {
            Error::from(database::Error::Unreachable { url: "db".into(), reason: "refused".into() })
        };
        let full =
            || Error::from(database::Error::Full { url: "db".into(), reason: "disk".into() });
        let fenced = || Error::Fenced { thread: ThreadId::new(), token: 1, current: 2 };
        assert_eq!(written(true, 1, away).await, (true, 2));
        assert_eq!(written(false, 1, away).await, (false, 1));
        assert_eq!(written(true, 1, full).await, (false, 1));
        assert_eq!(written(true, 1, fenced).await, (false, 1), "it is another's by now");
    }
}
