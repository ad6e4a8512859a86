//! Effects, their ends, answers and events on their way in.
//!
//! What a task has at one time is one statement.

use chrono::{DateTime, Utc};
use perihelion_database::idempotent;

use super::{
    super::{
        EffectRow, EffectSettlement, Encoded, Error, EventRow, Fence,
        both::{OwnJournal, columns::effect_columns, refusal::explain, sum_of_answer},
        checksum,
        limits::{big, text},
    },
    PostgresStore,
    events::Append,
    together,
};
use crate::ids::{InterruptId, ThreadId};

/// Binds effects where [`RECORD`] unnests them.
macro_rules! bind {
    ($query:expr, $columns:expr) => {
        $query
            .bind($columns.steps)
            .bind($columns.started_at)
            .bind($columns.ended_at)
            .bind($columns.tasks)
            .bind($columns.numbers)
            .bind($columns.attempts)
            .bind($columns.request_codecs)
            .bind($columns.outcome_codecs)
            .bind($columns.kinds)
            .bind($columns.statuses)
            .bind($columns.names)
            .bind($columns.keys)
            .bind($columns.requests)
            .bind($columns.outcomes)
            .bind($columns.request_sums)
            .bind($columns.outcome_sums)
    };
}

impl OwnJournal for PostgresStore {
    async fn record(&self, fence: Fence, effects: &[EffectRow]) -> Result<(), Error> {
        let token: i64 = idempotent!(self.connections, |c| bind!(
            sqlx::query_scalar(RECORD).bind(fence.thread.0).bind(big(fence.token)),
            Columns::new(fence.thread, effects)
        )
        .fetch_one(&mut *c))?;
        match token {
            0 => Err(explain(&self.database, fence).await?.fenced(fence)),
            _ => Ok(()),
        }
    }

    async fn settle(&self, fence: Fence, end: &EffectSettlement) -> Result<(), Error> {
        let settled: i64 = idempotent!(self.connections, |c| sqlx::query_scalar(SETTLE)
            .bind(fence.thread.0)
            .bind(big(fence.token))
            .bind(big(end.step))
            .bind(end.task as i32)
            .bind(&end.key[..])
            .bind(end.status.as_str())
            .bind(end.outcome.as_ref().map(|outcome| outcome.codec as i16))
            .bind(end.outcome.as_ref().map(|outcome| &outcome.bytes[..]))
            .bind(end.attempt as i32)
            .bind(checksum::outcome_at(end).to_vec())
            .fetch_one(&mut *c))?;
        if settled > 0 {
            return Ok(());
        }
        explain(&self.database, fence).await?;
        Err(Error::UnknownEffect { thread: fence.thread, step: end.step, task: end.task })
    }

    /// Not repeated after a broken connection: a second answer would look like somebody else's.
    async fn answer(&self, interrupt: InterruptId, answer: &Encoded) -> Result<bool, Error> {
        let mut connection = self.connections.take_tested().await?;
        let query = sqlx::query_as(ANSWER)
            .bind(interrupt.0.as_bytes().as_slice())
            .bind(answer.codec as i16)
            .bind(&answer.bytes[..])
            .bind(sum_of_answer(interrupt, answer).to_vec())
            .fetch_one(&mut *connection);
        let done: Result<(i64, i64), _> = self.connections.brief(query).await;
        Ok(connection.settle(done)?.0 == 1)
    }

    async fn append(&self, fence: Fence, batch: &EventRow) -> Result<(), Error> {
        let append = Append { fence, batch: batch.clone() };
        together::write(self, &self.appends, &append).await
    }
}

// The thread's row is locked in share mode first: a claim waits for it, and after a claim the fence no
// longer matches. Tasks of one step do not wait for each other.
const RECORD: &str = concat!(
    "WITH leased AS (SELECT id FROM thread WHERE id = $1 AND fence = $2 FOR SHARE), recorded AS (
        INSERT INTO effect (thread_id, ",
    effect_columns!(),
    ")
        SELECT leased.id, e.* FROM leased, unnest($3::bigint[], $4::timestamptz[], $5::timestamptz[], $6::integer[], $7::integer[], $8::integer[], $9::smallint[],
          $10::smallint[], $11::text[], $12::text[], $13::text[], $14::bytea[], $15::bytea[], $16::bytea[],
          $17::bytea[], $18::bytea[]) AS e (",
    effect_columns!(),
    ") ON CONFLICT DO NOTHING RETURNING thread_id, step, task
     ), counted AS (
        INSERT INTO effect_count (thread_id, step, task, effects)
        SELECT thread_id, step, task, count(*) FROM recorded GROUP BY thread_id, step, task
        ON CONFLICT (thread_id, step, task) DO UPDATE SET effects = effect_count.effects + excluded.effects
     )
     SELECT count(*) FROM leased"
);

/// Rows as the columns that a statement unnests.
struct Columns<'e> {
    steps: Vec<i64>,
    started_at: Vec<DateTime<Utc>>,
    ended_at: Vec<Option<DateTime<Utc>>>,
    tasks: Vec<i32>,
    numbers: Vec<i32>,
    attempts: Vec<i32>,
    request_codecs: Vec<i16>,
    outcome_codecs: Vec<Option<i16>>,
    kinds: Vec<&'static str>,
    statuses: Vec<&'static str>,
    names: Vec<String>,
    keys: Vec<&'e [u8]>,
    requests: Vec<&'e [u8]>,
    outcomes: Vec<Option<&'e [u8]>>,
    request_sums: Vec<Vec<u8>>,
    outcome_sums: Vec<Vec<u8>>,
}

impl<'e> Columns<'e> {
    fn new(thread: ThreadId, rows: &'e [EffectRow]) -> Self {
        fn each<'e, T>(rows: &'e [EffectRow], of: impl Fn(&'e EffectRow) -> T) -> Vec<T> {
            rows.iter().map(of).collect()
        }
        Self {
            steps: each(rows, |row| big(row.step)),
            started_at: each(rows, |row| row.started_at),
            ended_at: each(rows, |row| row.ended_at),
            tasks: each(rows, |row| row.task as i32),
            numbers: each(rows, |row| row.number as i32),
            attempts: each(rows, |row| row.attempt as i32),
            request_codecs: each(rows, |row| row.request.codec as i16),
            outcome_codecs: each(rows, |row| row.outcome.as_ref().map(|it| it.codec as i16)),
            kinds: each(rows, |row| row.kind.as_str()),
            statuses: each(rows, |row| row.status.as_str()),
            names: each(rows, |row| text(&row.name).into_owned()),
            keys: each(rows, |row| &row.key[..]),
            requests: each(rows, |row| &row.request.bytes[..]),
            outcomes: each(rows, |row| row.outcome.as_ref().map(|it| &it.bytes[..])),
            request_sums: each(rows, |row| checksum::request(thread, row).to_vec()),
            outcome_sums: each(rows, |row| checksum::outcome_of(row).to_vec()),
        }
    }
}

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
